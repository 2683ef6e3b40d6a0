set -e; export PATH=$PATH
cd TREE; git reset -q --hard main; git clean -qfd

python3 MOVES/pre.py; python3 MOVES/mapping.py; python3 MOVES/move.py . MOVES/map.json; find packages -type d -empty -delete
python3 MOVES/fix.py
R=MAIN/.venv/bin/ruff
$R check -q --fix . >/dev/null || true; $R format -q .; $R check . --output-format concise | grep -v "^ \|^$" | grep -E "^[a-z].*:[0-9]+:" || true
find packages/*/src -name "*.py" | wc -l
