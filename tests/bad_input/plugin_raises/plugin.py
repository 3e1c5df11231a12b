table = {}
print(table["missing"])
