"""`python -m dynamo_operator` is `dynamo-operator`."""

from dynamo_operator.main import main

main()
