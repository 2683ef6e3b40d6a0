"""Several models of one base model: each has its adapters, and one name belongs to one of them."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from simulated.clock import on_simulated_clock
from simulated.models import BASE, URI, Cluster, Worker, loaded


@asynccontextmanager
async def two_of_one_name() -> AsyncIterator[tuple[Cluster, Worker]]:
    """A worker that has the adapter of the model `one`, whose name the later model `two` wants too."""
    async with loaded("one") as (cluster, (worker,)):
        cluster.has_model("two", source={"uri": "s3://vault/two"})
        await asyncio.sleep(5)
        yield cluster, worker


@on_simulated_clock
async def test_several_models_on_one_base_do_not_meet() -> None:
    cluster = Cluster()
    workers = cluster.has_pods(2)
    cluster.has_model("one", modelName="a")
    cluster.has_model("two", modelName="b", source={"uri": "hf://org/b@v1"})
    cluster.has_model("three", modelName="c", source={"uri": "file:///weights/c"})
    async with cluster.operator():
        await asyncio.sleep(10)
        wanted = {"a": URI, "b": "hf://org/b@v1", "c": "file:///weights/c"}
        assert [wanted] * 2 == [each.loaded for each in workers]
        cluster.delete("two")
        await asyncio.sleep(5)
        assert [{"a": URI, "c": "file:///weights/c"}] * 2 == [each.loaded for each in workers]


@on_simulated_clock
async def test_of_two_models_with_one_name_the_first_has_it_and_the_other_follows() -> None:
    async with two_of_one_name() as (cluster, worker):
        await asyncio.sleep(55)
        assert {"legal-v2": URI} == worker.loaded
        text = f"LoRA legal-v2 of {BASE} belongs to DynamoModel one"
        assert ("False", "AdapterNameTaken", text) == cluster.condition(name="two")
        assert "True" == cluster.condition(name="one")[0]
        cluster.delete("one")
        await asyncio.sleep(10)
        assert {"legal-v2": "s3://vault/two"} == worker.loaded
        assert "True" == cluster.condition(name="two")[0]
        cluster.delete("two")
        await asyncio.sleep(10)
        assert {} == worker.loaded


@on_simulated_clock
async def test_a_name_that_is_given_up_goes_to_the_one_that_waits() -> None:
    async with two_of_one_name() as (cluster, worker):
        cluster.edit("one", modelName="other")
        await asyncio.sleep(20)
        assert {"other": URI, "legal-v2": "s3://vault/two"} == worker.loaded
        assert "True" == cluster.condition(name="one")[0]
        assert "True" == cluster.condition(name="two")[0]


@on_simulated_clock
async def test_the_deletion_of_one_that_waits_takes_nothing_from_the_other() -> None:
    async with two_of_one_name() as (cluster, worker):
        cluster.delete("two")
        await asyncio.sleep(30)
        assert {"legal-v2": URI} == worker.loaded
        assert ["load legal-v2"] == worker.asked
