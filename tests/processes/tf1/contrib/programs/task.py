"""One task of a cluster: serves until the test ends it."""

import tensorflow as tf

for job in ("ps", "worker"):
    tf.app.flags.DEFINE_string(job + "_hosts", "", "addresses")
tf.app.flags.DEFINE_string("job_name", "", "ps or worker")
tf.app.flags.DEFINE_integer("task_index", 0, "index of the task")


def main(_):
    flags = tf.app.flags.FLAGS
    spec = tf.train.ClusterSpec({"ps": flags.ps_hosts.split(","), "worker": flags.worker_hosts.split(",")})
    server = tf.train.Server(spec, job_name=flags.job_name, task_index=flags.task_index)
    print("serves", flush=True)
    server.join()


if __name__ == "__main__":
    tf.app.run()
