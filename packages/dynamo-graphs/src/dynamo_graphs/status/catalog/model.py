"""The reasons of a DynamoModel's conditions."""

from dynamo_graphs.plan.model import ModelReason
from dynamo_graphs.status.catalog import row as texts
from dynamo_graphs.status.catalog.row import Meaning
from dynamo_graphs.status.reasons import PauseReason

_MODEL = "DynamoModel"

MODEL_MEANINGS = (
    Meaning(
        *(_MODEL, "Paused", "True", PauseReason.COMPONENT_PAUSED),
        "The annotation `nvidia.com/paused` is `true`: the operator calls no worker and keeps "
        "the status. It still unloads a deleted model.",
        "To resume, run `dynamoctl rollout resume dm/NAME` or remove the annotation.",
    ),
    Meaning(
        *(_MODEL, "Paused", "False", PauseReason.COMPONENT_NOT_PAUSED),
        "The model was paused, and reconciliation has resumed.",
        texts.NO_ACTION,
    ),
    Meaning(*(_MODEL, "Valid", "True", ModelReason.VALID), "The spec is valid.", texts.NO_ACTION),
    Meaning(
        *(_MODEL, "Valid", "False", ModelReason.INVALID),
        "The spec is invalid; the message lists all errors. Pods keep what they have loaded.",
        "Correct the model.",
    ),
    Meaning(_MODEL, "Valid", "False", ModelReason.DECODE_FAILED, *texts.UNREADABLE),
    Meaning(_MODEL, "Valid", "False", ModelReason.TOO_LARGE, *texts.TOO_LARGE),
    Meaning(_MODEL, "Valid", "False", ModelReason.REJECTED, *texts.REFUSED),
    Meaning(
        *(_MODEL, "ServicesFound", "True", ModelReason.SERVICES_FOUND),
        "The operator found the pods of the base model through that many Services.",
        texts.NO_ACTION,
    ),
    Meaning(
        *(_MODEL, "ServicesFound", "False", ModelReason.NO_SERVICES),
        "The base model has no EndpointSlices, or they belong to no Service.",
        "See `EndpointsReady`.",
    ),
    Meaning(
        *(_MODEL, "EndpointsReady", "True", ModelReason.ALL_READY),
        "Every pod of the base model has loaded the LoRA, except prefill workers that cannot and "
        "whose graph has it elsewhere.",
        texts.NO_ACTION,
    ),
    Meaning(
        *(_MODEL, "EndpointsReady", "True", ModelReason.DISCOVERED),
        "The model is not a LoRA, and pods serve the base model; the operator calls none of them.",
        texts.NO_ACTION,
    ),
    Meaning(
        *(_MODEL, "EndpointsReady", "False", ModelReason.NOT_READY),
        "Some pods have loaded the LoRA, others have not; the message has the most frequent "
        "cause, `status.endpoints` the cause of each.",
        "Wait while the number grows. The operator retries failed pods; if one keeps failing, "
        "follow the table in [models.md](models.md#troubleshooting).",
    ),
    Meaning(
        *(_MODEL, "EndpointsReady", "False", ModelReason.NONE_READY),
        "No pod has loaded the LoRA; the message has the most frequent cause.",
        "See the table in [models.md](models.md#troubleshooting). The cause is empty during "
        "first loads.",
    ),
    Meaning(
        *(_MODEL, "EndpointsReady", "False", ModelReason.NO_ENDPOINTS),
        "No pods serve the base model in this namespace; the message says what is missing.",
        "Deploy a graph with that `modelRef.name` in this namespace, or correct `baseModelName`.",
    ),
    Meaning(
        *(_MODEL, "EndpointsReady", "False", ModelReason.NOT_CALLED),
        "The operator calls no worker: it runs outside the cluster, where pod addresses may "
        "belong to other machines, or `--model-calls=never` is set.",
        "Run the operator in the cluster. If its network reaches the pods, set "
        "`--model-calls=always`.",
    ),
    Meaning(
        *(_MODEL, "EndpointsReady", "False", ModelReason.CONFLICT),
        "Another model has a LoRA of that name on the base model; the message says which.",
        "Choose another `modelName`, or delete or rename the other; the operator then continues.",
    ),
)
