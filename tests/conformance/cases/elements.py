"""Finding operations and tensors, and what these answer."""

import numpy as np

EXPRESSIONS = """
graph.as_graph_element(x) | graph.as_graph_element('x:0') | graph.as_graph_element('x')
graph.as_graph_element('n') | graph.as_graph_element('n:0') | graph.as_graph_element('x:1')
graph.as_graph_element('q') | graph.as_graph_element('q:0') | graph.as_graph_element('x:0:0')
graph.as_graph_element('x:a') | graph.as_graph_element('x:') | graph.as_graph_element('')
graph.as_graph_element(1) | graph.as_graph_element(None) | graph.as_graph_element([x])
graph.as_graph_element(b'x:0') | graph.as_graph_element(foreign) | graph.as_graph_element(foreign.op)
graph.as_graph_element('^n') | graph.as_graph_element(x, allow_tensor=False)
graph.as_graph_element(op, allow_operation=False) | graph.as_graph_element('x:0', allow_tensor=False)
graph.as_graph_element('x', allow_operation=False) | graph.as_graph_element('q', allow_operation=False)
graph.as_graph_element('q', allow_tensor=False) | graph.get_tensor_by_name('x:0') | graph.get_tensor_by_name('x')
graph.get_tensor_by_name('q:0') | graph.get_tensor_by_name('q') | graph.get_tensor_by_name(x)
graph.get_tensor_by_name(1) | graph.get_operation_by_name('x') | graph.get_operation_by_name('x:0')
graph.get_operation_by_name('q') | graph.get_operation_by_name(op) | graph.get_operation_by_name(1)
[o.name for o in graph.get_operations()] | graph.version | graph.seed | graph.finalized | x.graph is graph
x.op.get_attr('dtype') == tf.float32 | x.op.get_attr('nope') | x.op.values()[0] is x | x.op.outputs[0] is x
x.op.type | str(x) | repr(x) | repr(op) | x.name | x.dtype == tf.float32 | x.value_index | x.op.node_def.name
op.op_def.name | bool(x) | len(x) | list(x) | x[0].shape | [y for y in x] | x in [x] | x == x | x == 1 | x != x
float(x) | int(x) | list(tf.constant(1)) | list(tf.placeholder('float32')) | list(tf.placeholder('float32', [None]))
np.asarray(x) | x.shape.as_list() | x.get_shape().as_list() | x.set_shape([3]) | x.set_shape([2])
x.set_shape(None) | x.set_shape([1, 2]) | x.eval() | op.run() | [o.name for o in x.consumers()]
op.colocation_groups() | len(x.op.inputs) | x.op.control_inputs | graph.is_feedable(x) | graph.is_fetchable(x)
[graph.prevent_feeding(x), graph.is_feedable(x)] | [graph.prevent_fetching(op), graph.is_fetchable(op)] | x.device
op.device | [tf.identity(x).consumers(), len(x.consumers())] | tf.identity(foreign) | tf.identity(op)
tf.convert_to_tensor(op) | tf.convert_to_tensor(x, tf.int32) | tf.convert_to_tensor(x, tf.float32) is x
tf.convert_to_tensor(None) | tf.convert_to_tensor(object()) | tf.convert_to_tensor([x, x]).shape.as_list()
tf.convert_to_tensor([x, [1., 2.]]).shape.as_list() | tf.convert_to_tensor([[1, 2], [3]]) | tf.convert_to_tensor({})
tf.convert_to_tensor([]).dtype == tf.float32
"""


def cases(tf):
    texts = [text.strip() for line in EXPRESSIONS.strip().splitlines() for text in line.split(" | ")]
    return {text: lambda tf, text=text: _value(tf, text) for text in texts}


def _value(tf, text):
    with tf.Graph().as_default():
        foreign = tf.constant(1)
    x = tf.placeholder("float32", [2], name="x")
    names = {"tf": tf, "np": np, "graph": tf.get_default_graph(), "x": x, "op": tf.no_op(name="n"), "foreign": foreign}
    value = eval(text, names)
    return getattr(value, "name", value)
