"""Writes docs/registry.md from the schema and docs/hooks.md from the hookspecs; a test checks that they are current."""

from __future__ import annotations

import inspect
from pathlib import Path

from framework import hookspecs, schema
from framework.fields import describe_fields

DOCS = Path(__file__).resolve().parent.parent / "docs"

REGISTRY_HEAD = """# registry.yaml, every key

<!-- Written by scripts/make_reference.py from framework/schema.py; change it there. -->

A registry names components, composes them into experiments, and puts grids around those. Values may refer to others
(`steps: ${training.batch}`; within `{...}` in quotes, `{steps: "${training.batch}"}`); nothing else is evaluated, and
no environment variable is read. A name is looked up among the `components` first, then among the plugins.

```yaml
study: masks
components:
  optimizers:
    careful: {plugin: ppo_lagrangian, learning_rate: 2e-3}
training: {steps: 60_000, batch: 2_400, rows: 100}
seeds: [0, 1, 2]
experiments:
  heed: {env: ford, interpreter: oracle, policy: mlp, optimizer: careful}
ablations:
  product:                                  # 2 x 2 cells; the first is the baseline
    base: heed
    axes:
      policy.uses.budget: [true, false]
      optimizer.learning_rate: [1e-3, 3e-3]
    exclude:
      - {policy.uses.budget: false, optimizer.learning_rate: 3e-3}
  one_by_one:                               # the base, and one cell for each variant
    base: heed
    variants:
      no mask: {policy.uses.mask: false, policy.uses.budget: false}
      untold: {interpreter: none}
```

A run is named by a hash of its resolved cell and seed: cells that two grids share run once, finished runs are skipped,
and a study that was stopped goes on with the same command. Settings of each plugin: `python -m framework.run --list`.
"""

SECTIONS = (
    ("", schema.Registry),
    ("plugins[]", schema.PluginEntry),
    ("components", schema.Components),
    ("training", schema.Training),
    ("training.interpreter", schema.InterpreterLearning),
    ("training.evaluation", schema.Evaluation),
    ("experiments.<name>", schema.Experiment),
    ("ablations.<name>", schema.Ablation),
    ("evaluations.<name>", schema.Exam),
    ("report", schema.Report),
    ("report.reference[]", schema.Reference),
)


def registry() -> str:
    parts = [REGISTRY_HEAD]
    for path, cls in SECTIONS:
        parts.append(f"\n## {f'`{path}`' if path else 'Top level'}\n\n{inspect.getdoc(cls)}\n")
        parts.append("\n| key | type | default | meaning |\n|---|---|---|---|\n")
        for f in describe_fields(cls):
            kind = f.type.replace("|", "\\|")
            parts.append(f"| `{f.name}` | `{kind}` | `{f.default}` | {f.text} |\n")
    return "".join(parts)


def hooks() -> str:
    parts = [
        "# Hooks\n\n<!-- Written by scripts/make_reference.py from framework/hookspecs.py; change it there. -->\n\n"
    ]
    parts.append(f"{inspect.getdoc(hookspecs)}\n")
    for name, item in vars(hookspecs).items():
        if name.startswith("heed_"):
            parts.append(f"\n## `{name}{_signature(item)}`\n\n{inspect.getdoc(item)}\n")
    for cls in (hookspecs.RunInfo, hookspecs.RunObserver, hookspecs.NamedObserver):
        parts.append(f"\n## `{cls.__name__}`\n\n{inspect.getdoc(cls)}\n\n")
        if cls is hookspecs.RunInfo:
            parts += [f"- `{f.name}: {f.type}` {f.text}\n" for f in describe_fields(cls)]
        elif cls is hookspecs.RunObserver:
            for name, method in vars(cls).items():
                if inspect.isfunction(method) and not name.startswith("_"):
                    parts.append(f"- `{name}{_signature(method)}`: {inspect.getdoc(method)}\n")
    return "".join(parts)


def _signature(function: object) -> str:
    return str(inspect.signature(function)).replace("'", "")  # type: ignore[arg-type]


PAGES = {"registry.md": registry, "hooks.md": hooks}

if __name__ == "__main__":
    for name, make in PAGES.items():
        (DOCS / name).write_text(make())
