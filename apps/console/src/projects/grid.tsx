// A table of values that is wider than its page: it scrolls in both directions, and renders the rows in view.
import { Icon } from "../view/icon.tsx";
import { useRowWindow } from "../view/row-window.ts";
import { t } from "../words/words.ts";
import { describeCell, isNumberType, type Cell } from "./data.ts";

/** A column of a grid. */
interface GridColumn {
  name: string;
  type: string;
  /** Place of its value in a row. */
  index: number;
  /** True if its values are dots: it has no order. */
  isSecret?: boolean;
}

/** Properties of a grid. */
interface GridProps<Row> {
  label: string;
  columns: readonly GridColumn[];
  rows: readonly Row[];
  idOf?: (row: Row) => string;
  selected?: string;
  onSelect?: (id: string) => void;
  /** Name of the sorted column, with `-` in front descending. */
  sort?: string;
  onSort?: (sort: string | undefined) => void;
}

interface Values {
  readonly values: readonly Cell[];
}

export function DataGrid<Row extends Values>(props: GridProps<Row>) {
  const { label, columns, rows, idOf } = props;
  const { table, window } = useRowWindow(rows.length, undefined);
  const first = window?.first ?? 0;
  const last = window?.last ?? rows.length;
  const rowPx = window?.rowPx ?? 0;
  return (
    <div class="grid-box" role="region" aria-label={label} tabIndex={0}>
      <table ref={table} class="table data-grid" aria-label={label} aria-rowcount={rows.length + 1}>
        <thead>
          <tr>
            {columns.map((column) => (
              <GridHead key={column.index} {...props} column={column} />
            ))}
          </tr>
        </thead>
        <tbody>
          {window !== undefined && <Spacer px={first * rowPx} />}
          {rows.slice(first, last).map((row, index) => (
            <GridRow
              key={idOf?.(row) ?? first + index}
              {...props}
              row={row}
              id={idOf?.(row) ?? String(first + index)}
              rowIndex={first + index + 2}
            />
          ))}
          {window !== undefined && <Spacer px={Math.max(0, rows.length - last) * rowPx} />}
        </tbody>
      </table>
    </div>
  );
}

function GridHead<Row>({ column, sort = "", onSort }: GridProps<Row> & { column: GridColumn }) {
  const { name, type, isSecret } = column;
  const isSorted = sort === name || sort === `-${name}`;
  const isDescending = sort.startsWith("-");
  const next = !isSorted ? name : isDescending ? undefined : `-${name}`;
  const title = (
    <>
      <span class="mono">{name}</span> <small class="i3">{type}</small>
    </>
  );
  return (
    <th
      scope="col"
      title={`${name} ${type}`}
      aria-sort={isSorted ? (isDescending ? "descending" : "ascending") : undefined}
    >
      {onSort === undefined || isSecret === true ? (
        title
      ) : (
        <button type="button" class="sort" onClick={() => onSort(next)}>
          {title}
          {isSorted && <Icon name={isDescending ? "down" : "up"} size={11} />}
        </button>
      )}
    </th>
  );
}

function GridRow<Row extends Values>(
  props: GridProps<Row> & { row: Row; id: string; rowIndex: number },
) {
  const { columns, row, id, selected, onSelect, rowIndex } = props;
  const isSelected = id === selected;
  return (
    <tr
      data-row={id}
      class={isSelected ? "sel" : ""}
      aria-selected={isSelected ? "true" : undefined}
      aria-rowindex={rowIndex}
      tabIndex={onSelect === undefined ? undefined : 0}
      onClick={() => onSelect?.(id)}
      onKeyDown={(event) => {
        if (event.key === "Enter") onSelect?.(id);
      }}
    >
      {columns.map(({ index, type, isSecret }) => {
        const { text, kind } = describeCell(row.values[index] ?? null);
        const number = isNumberType(type) && kind === "cell-number" ? "num" : "";
        return (
          <td key={index} class={`mono ${kind} ${number}`}>
            {isSecret === true && kind === "cell-null" && text !== "null" ? (
              <span title={t("hidden by its name")}>{text}</span>
            ) : (
              text.slice(0, 300)
            )}
          </td>
        );
      })}
    </tr>
  );
}

function Spacer({ px }: { px: number }) {
  return <tr class="spacer" aria-hidden="true" style={{ height: `${px}px` }} />;
}
