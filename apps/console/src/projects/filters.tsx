// Conditions on columns, without SQL. They are in the address, as JSON.
import { useEffect, useRef, useState } from "preact/hooks";
import { queryValue } from "../router/router.ts";
import { Action, Options } from "../view/controls.tsx";
import { Icon } from "../view/icon.tsx";
import { t } from "../words/words.ts";
import { readInput, type DataTable, type InputCell } from "./data.ts";

/** A condition. */
export interface Condition {
  column: string;
  op: string;
  value?: InputCell;
}

const SIGNS: Readonly<Record<string, string>> = {
  eq: "=",
  ne: "≠",
  lt: "<",
  le: "≤",
  gt: ">",
  ge: "≥",
};

function listOperations(): [op: string, label: string][] {
  return [
    ["eq", "="],
    ["contains", t("contains")],
    ["starts", t("begins with")],
    ["ne", "≠"],
    ["lt", "<"],
    ["le", "≤"],
    ["gt", ">"],
    ["ge", "≥"],
    ["null", t("is null")],
    ["set", t("is not null")],
  ];
}

/** Reads the conditions of an address; none if they are damaged. */
export function readConditions(text: string): Condition[] {
  try {
    const found: unknown = JSON.parse(text);
    return Array.isArray(found) ? (found as Condition[]) : [];
  } catch {
    return [];
  }
}

/** The conditions, each with a button that removes it, and a form for another one. */
export function Filters(props: {
  table: DataTable;
  conditions: readonly Condition[];
  onChange: (conditions: readonly Condition[]) => void;
}) {
  const { table, conditions, onChange } = props;
  const columns = table.columns.filter(({ hidden }) => !hidden);
  const [column, setColumn] = useState("");
  const [op, setOp] = useState("eq");
  const [value, setValue] = useState("");
  const field = useRef<HTMLInputElement>(null);
  // A table is mostly opened to find a row.
  useEffect(() => {
    if (conditions.length === 0 && queryValue("row") === "")
      field.current?.focus({ preventScroll: true });
  }, []);
  // Most look for a key or a text: until a column is chosen, the value says which one is meant.
  const chosen = columns.find(({ name }) => name === column) ?? guessColumn(columns, value);
  const needsValue = op !== "null" && op !== "set";
  const add = (): void => {
    if (chosen === undefined) return;
    const isText = op === "contains" || op === "starts";
    const cell = isText ? value : readInput(value, chosen.type);
    onChange([...conditions, { column: chosen.name, op, ...(needsValue ? { value: cell } : {}) }]);
    setValue("");
  };
  return (
    <form
      class="filters"
      onSubmit={(event) => {
        event.preventDefault();
        add();
      }}
    >
      <Chips conditions={conditions} onChange={onChange} />
      <Choice
        label={t("Column")}
        value={chosen?.name ?? ""}
        options={columns.map(({ name }) => [name, name] as const)}
        onChange={setColumn}
      />
      <Choice label={t("Comparison")} value={op} options={listOperations()} onChange={setOp} />
      {needsValue && (
        <input
          ref={field}
          data-filter
          class="field field-auto mono"
          aria-label={t("Value")}
          placeholder={t("Value")}
          value={value}
          spellcheck={false}
          autocomplete="off"
          onInput={(event) => setValue(event.currentTarget.value)}
        />
      )}
      <Action onClick={add} icon="filter">
        {t("Filter")}
      </Action>
    </form>
  );
}

function guessColumn(
  columns: readonly DataTable["columns"][number][],
  value: string,
): DataTable["columns"][number] | undefined {
  const named = value.includes("@") ? columns.find(({ name }) => /mail/i.test(name)) : undefined;
  const isText = value !== "" && !/^-?[\d.]+$/.test(value);
  const text = isText ? columns.find(({ type }) => /text|char|clob|citext/i.test(type)) : undefined;
  return named ?? text ?? columns[0];
}

function Choice(props: {
  label: string;
  value: string;
  options: readonly (readonly [value: string, label: string])[];
  onChange: (value: string) => void;
}) {
  return (
    <select
      class="field field-auto"
      aria-label={props.label}
      value={props.value}
      onChange={(event) => props.onChange(event.currentTarget.value)}
    >
      <Options of={props.options} />
    </select>
  );
}

function Chips(props: {
  conditions: readonly Condition[];
  onChange: (conditions: readonly Condition[]) => void;
}) {
  const { conditions, onChange } = props;
  const operations = listOperations();
  return (
    <>
      {conditions.map((one, index) => (
        <button
          key={JSON.stringify(one)}
          type="button"
          class="btn sm mono"
          title={t("Remove the condition on {name}", { name: one.column })}
          onClick={() => onChange(conditions.filter((_one, at) => at !== index))}
        >
          {one.column} {SIGNS[one.op] ?? operations.find(([name]) => name === one.op)?.[1]}{" "}
          {one.value === undefined ? "" : describeValue(one.value)}
          <Icon name="close" size={11} />
        </button>
      ))}
    </>
  );
}

function describeValue(value: InputCell): string {
  if (value === null) return "null";
  if (typeof value !== "object") return String(value);
  return "int" in value ? value.int : t("bytes");
}
