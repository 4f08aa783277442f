"""The nightly audit as a pod, where the provider of Kubernetes is installed.

The image holds evenrank in its path; the volume holds audit.yaml, and the store beside it.  What
the audit writes as its summary is what the operator gives to XCom.
"""

from datetime import UTC, datetime, timedelta
from importlib.util import find_spec

from airflow.sdk import DAG, Asset, CronDataIntervalTimetable

IMAGE = "evenrank:latest"
CLAIM = "evenrank"
AUDIT = """
exec evenrank run --log --config /audit/audit.yaml --summary /airflow/xcom/return.json \
    --batch "{{ data_interval_start.isoformat() }}" \
    {{ '' if dag_run.run_type == 'backfill' else '--require-data' }}
"""

if find_spec("airflow.providers.cncf"):
    from airflow.providers.cncf.kubernetes.operators.pod import KubernetesPodOperator
    from kubernetes.client import models

    with DAG(
        "evenrank_pod",
        # Named, since "@daily" has no interval in Airflow 3.
        schedule=CronDataIntervalTimetable("0 3 * * *", timezone="UTC"),
        start_date=datetime(2026, 1, 1, tzinfo=UTC),
        catchup=False,
        default_args={
            "retries": 2,
            "retry_delay": timedelta(minutes=5),
            "retry_exponential_backoff": 2.0,
        },
        tags=["evenrank"],
        doc_md=__doc__,
    ) as pod_dag:
        claim = models.V1PersistentVolumeClaimVolumeSource(claim_name=CLAIM)
        KubernetesPodOperator(
            task_id="audit",
            image=IMAGE,
            cmds=["sh", "-c"],
            arguments=[AUDIT],
            volumes=[models.V1Volume(name="audit", persistent_volume_claim=claim)],
            volume_mounts=[models.V1VolumeMount(name="audit", mount_path="/audit")],
            do_xcom_push=True,
            skip_on_exit_code=4,
            # An audit that is told to stop ends within seconds.
            termination_grace_period=30,
            outlets=[Asset(name="evenrank_history", uri="evenrank://history")],
        )
