"""The nightly audit as one BashOperator.

An exit code can skip the task here, but it cannot tell failures apart: a refused batch is tried
again too, with the same result.  Its Variables are those of evenrank_nightly.
"""

from datetime import UTC, datetime, timedelta

from airflow.providers.standard.operators.bash import BashOperator
from airflow.sdk import DAG, Asset, CronDataIntervalTimetable

# BashOperator starts in a folder of its own, gives the last line to XCom, and passes SIGTERM on.
AUDIT = """
summary=$PWD/summary.json
cd "{{ var.value.get('evenrank_home', '.') }}" || exit 2
"{{ var.value.get('evenrank_bin', 'evenrank') }}" run --log \
    --batch "{{ data_interval_start.isoformat() }}" --summary "$summary" \
    {{ '' if dag_run.run_type == 'backfill' else '--require-data' }}
code=$?
tr -d '\\n' < "$summary"
exit $code
"""

with DAG(
    "evenrank_bash",
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
):
    BashOperator(
        task_id="audit",
        bash_command=AUDIT,
        skip_on_exit_code=4,
        outlets=[Asset(name="evenrank_history", uri="evenrank://history")],
    )
