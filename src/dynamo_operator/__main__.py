"""`python -m dynamo_operator` is `dynamo-operator`."""

from dynamo_operator.cli.manager import main

main()
