"""What starts the workers of shards: each takes messages from the queue of its number."""

from pathlib import Path

import kubernetes_validate
import pytest
import yaml

import extras.sharding
from tests.annotator.test_kubernetes import VERSION

pytestmark = pytest.mark.pure

FOLDER = Path(extras.sharding.__file__).parent


def test_a_pods_and_an_instances_number_is_its_shards() -> None:
    pods = yaml.safe_load((FOLDER / "statefulset.yaml").read_text())
    kubernetes_validate.validate(pods, VERSION, strict=True)
    [container] = pods["spec"]["template"]["spec"]["containers"]
    in_pod = " ".join([*container["command"], *container["args"]])
    unit = (FOLDER / "inquire-shard@.service").read_text()
    [in_unit] = [line for line in unit.splitlines() if line.startswith("ExecStart=")]
    as_in_pod = in_unit.replace("%i", "$(SHARD)").replace("%H", "%h")
    assert as_in_pod == f"ExecStart=/opt/inquire/bin/{in_pod}"
    assert "--queues ranking.$(SHARD) " in in_pod
