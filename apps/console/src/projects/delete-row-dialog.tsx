// The confirmation of a deletion, with the number of rows that fall with the row.
import { formatNumber } from "../format/format.ts";
import { FormDialog } from "../view/dialog.tsx";
import { useLoad } from "../view/load.ts";
import { LoadProblem } from "../view/problem.tsx";
import { setQuery } from "../router/router.ts";
import { say } from "../view/toast.tsx";
import { t } from "../words/words.ts";
import { type DataRow, type DataTable, keyOf } from "./data.ts";
import type { TableName } from "./database-frame.tsx";
import { deleteRow, readBefore } from "./row-changes.ts";

export function DeleteRowDialog(props: {
  name: TableName;
  table: DataTable;
  row: DataRow;
  onClose: () => void;
  onDone: () => void;
}) {
  const { name, table, row, onClose, onDone } = props;
  const body = { key: keyOf(row)!, before: readBefore(table, row) };
  const trial = useLoad(`trial ${JSON.stringify(body.key)}`, async () =>
    deleteRow(name, { body, table }, true),
  );
  const others = trial.data.value?.others;
  return (
    <FormDialog
      title={t("Delete the row")}
      submit={t("Delete")}
      isDestructive
      isDisabled={trial.data.value === undefined}
      onClose={onClose}
      onSubmit={async () => {
        await deleteRow(name, { body, table }, false);
        say(t("The row was deleted."));
        setQuery({ row: undefined });
        onDone();
      }}
    >
      <p class="mono wrap">{JSON.stringify(body.key)}</p>
      <LoadProblem of={trial} />
      {others !== undefined && <p>{describeOthers(others)}</p>}
    </FormDialog>
  );
}

function describeOthers(others: number | null): string {
  if (others === null) {
    return t("PostgreSQL does not tell how many rows fall with it, by foreign keys and triggers.");
  }
  if (others === 0) return t("No other row falls with it.");
  return t("{n} other rows change or fall with it, by foreign keys and triggers.", {
    n: formatNumber(others),
  });
}
