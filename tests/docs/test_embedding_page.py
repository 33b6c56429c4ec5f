"""Each guarantee of docs/embedding.md is shown by tests."""

import re

import pytest
from support import ROOT, TESTS

PAGE = (ROOT / "docs" / "embedding.md").read_text()
LISTS = re.findall(r"^You can rely on the following:\n\n((?:[* ] .+\n)+)", PAGE, re.MULTILINE)
GUARANTEES = [re.sub(r"\s+", " ", item) for listed in LISTS
              for item in re.split(r"^\* ", listed, flags=re.MULTILINE)[1:]]

# The beginning of each guarantee, and the tests that show it, followed by their scenarios if these are only some.
SHOWN = {
    "The order above holds": [
        "test_thread_counts.py::test_environment_chooses_the_thread_count",
        "test_thread_counts.py::test_context_goes_before_setting_goes_before_environment",
        "test_thread_counts.py::test_the_chosen_number_of_threads_runs",
        "test_thread_counts.py::test_absurd_environment_is_harmless"],
    "CPU binding and quotas are respected": [
        "test_thread_counts.py::test_affinity_limits_the_thread_count",
        "test_thread_counts.py::test_control_groups_limit_processors",
        "test_thread_counts.py::test_quota_becomes_whole_threads"],
    "`with onnxpool.num_threads(n)` applies": ["test_embedding.py::test_limits"],
    "A call runs on one thread or on the number requested": [
        "test_thread_counts.py::test_a_team_is_one_thread_or_the_number_asked_for"],
    "Any thread may call at any time": ["test_embedding.py::test_many_threads"],
    "Callers do not multiply threads": ["test_embedding.py::test_many_callers_few_threads"],
    "No setting of OpenMP's own environment variables": ["test_embedding.py::test_misconfigured_openmp"],
    "If the system refuses to start threads": ["test_embedding.py::test_no_room_for_threads"],
    "If a call waits for a worker longer": [
        "test_busy_cores.py::test_each_late_worker_halves_the_team",
        "test_busy_cores.py::test_calls_on_many_threads_run_on_half_as_many",
        "test_busy_cores.py::test_calls_run_alone_until_the_pause_is_over",
        "test_busy_cores.py::test_another_caller_keeps_its_team",
        "test_busy_cores.py::test_a_pause_grows_with_each_wait_and_is_bounded"],
    "torch and onnxruntime work in the same process": ["test_embedding.py::test_other_runtimes"],
    "Attributes and shapes that never recur": [
        "test_caches.py::test_distinct_attributes_do_not_add_up",
        "test_caches.py::test_distinct_shapes_do_not_add_up"],
    "An entry of the caches is small": [
        "test_caches.py::test_padding_is_not_remembered",
        "test_caches.py::test_full_caches_of_the_most_axes_are_small",
        "test_foreign_arguments.py::test_lists_longer_than_any_array_has_axes_are_refused"],
    "Operators and plans are not part of any reference cycle": [
        "test_caches.py::test_an_operator_does_not_keep_its_plan"],
    "`clear_caches` frees": ["test_caches.py::test_what_is_remembered_is_forgotten_when_asked"],
    "`output_shape` computes a shape": [
        "test_caches.py::test_output_shape_makes_no_plan",
        "test_windows_of_an_axis.py::test_nothing_is_stored_for_a_window_in_the_padding"],
    "A result has the memory order of x": ["test_side_effects.py::test_results_lie_in_memory_as_x_does"],
    "The tightest of all limits is in force": [
        "test_limits.py::test_blocks_tighten_limits",
        "test_limits.py::test_the_environment_sets_limits_that_nothing_loosens"],
    "`with onnxpool.limits(...)` applies": [
        "test_limits.py::test_blocks_apply_to_their_own_thread_and_tasks",
        "test_limits.py::test_a_task_that_outlives_its_block_keeps_the_limits_of_remembered_calls"],
    "Limits hold for functions": [
        "test_limits.py::test_random_calls_need_what_plain_loops_count",
        "test_limits.py::test_calls_that_are_remembered_obey_limits_set_later",
        "test_limits.py::test_models_obey_limits",
        "test_limits.py::test_the_command_line_obeys_the_environment"],
    "A part of a plan is a call of its own": [
        "test_limits.py::test_parts_are_calls_of_their_own",
        "test_limits.py::test_chunks_of_dask_are_calls_of_their_own"],
    "A node of an onnxruntime session": [
        "test_limits.py::test_models_obey_limits",
        "test_limits.py::test_a_node_is_judged_before_it_is_split"],
    "A handle of the C API": ["test_limits.py::test_handles_are_made_within_limits"],
    "A variable that is set to anything": ["test_limits.py::test_a_variable_that_is_no_limit_is_refused"],
    "After a fork, the child works": [
        "test_embedding.py::test_forks fork_after_a_parallel_call fork_before_any_call fork_twice"],
    "This also holds while other threads": [
        "test_embedding.py::test_forks fork_with_threads_in_kernels fork_from_another_thread"],
    "A fork during a parallel call": ["test_embedding.py::test_forks fork_in_a_handler"],
    "multiprocessing and ProcessPoolExecutor": ["test_embedding.py::test_multiprocessing"],
    "A server can warm up": ["test_embedding.py::test_prefork_server"],
    "Operators and plans can be pickled": [
        "test_side_effects.py::test_every_operator_and_plan_is_copied_whole"],
    "Results have the same bits": ["test_embedding.py::test_float_state"],
    "Workers compute as the caller does": ["test_embedding.py::test_float_state workers_of_another_state"],
    "Calling a plan leaves the caller's state": ["test_embedding.py::test_float_state"],
    "Ctrl-C during a long call ends it": ["test_embedding.py::test_interrupts"],
    "Handlers that do not raise": ["test_embedding.py::test_handlers_during_a_call"],
    "An interrupt leaves nothing stuck": ["test_embedding.py::test_interrupts"],
    "A call in another thread does not delay": ["test_embedding.py::test_interrupt_beside_a_call"],
}


def test_each_guarantee_is_in_the_table() -> None:
    """The page and the table have the same guarantees, in the same order."""
    assert len(LISTS) == len(re.findall(r"^## ", PAGE, re.MULTILINE))
    assert len(GUARANTEES) == len(SHOWN)
    for guarantee, beginning in zip(GUARANTEES, SHOWN, strict=True):
        assert guarantee.startswith(beginning)


@pytest.mark.parametrize("beginning", SHOWN)
def test_the_tests_of_a_guarantee_exist(beginning: str) -> None:
    """The table names test functions, and scenarios, that exist."""
    scenarios = "".join(path.read_text() for path in (TESTS / "helpers").glob("scenarios_*.py"))
    for shown in SHOWN[beginning]:
        test, *names = shown.split(" ")
        file, _, function = test.partition("::")
        assert f"\ndef {function}(" in next(TESTS.rglob(file)).read_text()
        for name in names:
            assert f"\ndef {name}(" in scenarios
