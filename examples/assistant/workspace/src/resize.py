import sys

print("resized", sys.argv[1])
