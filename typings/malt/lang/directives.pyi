def set_loop_options(
    parallel_iterations: object = ...,
    swap_memory: object = ...,
    maximum_iterations: object = ...,
    shape_invariants: object = ...,
) -> None: ...
