// The objects of a bucket: folders, list, upload by button or drop, and the chosen object on the right.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { formatBytes, formatDate, formatMoment, formatNumber } from "../format/format.ts";
import { href, navigate, queryValue, setQuery } from "../router/router.ts";
import { useCommands, useCrumbs } from "../stage/stage.ts";
import { Action, FilterField } from "../view/controls.tsx";
import { useLoad, type Loaded } from "../view/load.ts";
import { Icon } from "../view/icon.tsx";
import { Empty, Split } from "../view/pane.tsx";
import { ProblemText } from "../view/problem-text.tsx";
import { Missing, Problem } from "../view/problem.tsx";
import { Table } from "../view/table.tsx";
import { say } from "../view/toast.tsx";
import { t } from "../words/words.ts";
import { BucketPane } from "./bucket-pane.tsx";
import { DeleteObjects } from "./delete-objects.tsx";
import { FolderDialog } from "./folder-dialog.tsx";
import { ROWS_MAX } from "./folder-list.ts";
import { useListing, type ListRow } from "./listing.ts";
import { ObjectPane } from "./object-pane.tsx";
import { folderHref, listBuckets, showKey, splitPrefix, type Bucket } from "./objects.ts";
import { UploadDock } from "./upload/dock.tsx";
import { readDrop, readInput } from "./upload/dropped-files.ts";
import { addUploads, writes, type NamedFile } from "./upload/queue.ts";

const REFRESH_MS = 10_000;
/** Lists load again this long after the last of several uploads. */
const SETTLE_MS = 800;

/** The page. `prefix` is empty or ends with `/`. */
export function BrowserPage({ bucket, prefix }: { bucket: string; prefix: string }) {
  useCrumbs([
    { label: t("Storage") },
    { label: t("Buckets"), to: "/storage/buckets" },
    { label: bucket, to: folderHref(bucket), isName: true },
    ...splitPrefix(prefix).map((folder) => ({
      label: nameFolder(folder.name),
      to: folderHref(bucket, folder.prefix),
      isName: true,
    })),
  ]);
  const buckets = useLoad("buckets", listBuckets, REFRESH_MS);
  const own = buckets.data.value?.find(({ name }) => name === bucket);
  const start = queryValue("starts");
  const withDeleted = queryValue("deleted") === "1";
  const list = useListing(bucket, prefix + start, withDeleted);
  const { rows, isLoading, failure, hasMore } = list;
  const isGone = failure?.status === 404;
  const isKnown = own !== undefined;
  const wasKnown = useRef(false);
  // Somebody else may delete the bucket of an open page: its listing says so.
  useEffect(() => {
    if (wasKnown.current && !isKnown) void list.reload();
    wasKnown.current = isKnown;
  }, [isKnown]);
  const [checked, setChecked] = useState<ReadonlySet<string>>(new Set());
  const [dialog, setDialog] = useState<"folder" | "delete" | undefined>(undefined);
  const selected = queryValue("key");
  const input = useRef<HTMLInputElement>(null);
  const hasVersions = own?.versioning === "Enabled";
  const hadVersions = own !== undefined && own.versioning !== "Unset";
  const toggleDeleted = (): void => setQuery({ deleted: withDeleted ? undefined : "1" });
  useEffect(() => setChecked(new Set()), [bucket, prefix, start, withDeleted]);
  useReloadAfterUploads(() => {
    void list.reload();
    void buckets.reload();
  });
  const send = (files: readonly NamedFile[]): void => {
    if (files.length === 0) return;
    const refused = addUploads(bucket, files, hasVersions);
    if (refused > 0) say(t("{n} files were left out: 10 000 at a time.", { n: refused }));
  };
  const choose = (): void => input.current?.click();
  const chosen = useMemo(
    () => rows.filter((row) => checked.has(row.id) && !isDeleted(row)),
    [rows, checked],
  );
  useCommands([
    { label: t("Upload…"), key: "u", icon: "up", run: choose },
    { label: t("New folder…"), icon: "folder", run: () => setDialog("folder") },
    ...(chosen.length > 0
      ? [{ label: t("Delete…"), key: "e", icon: "trash", run: () => setDialog("delete") }]
      : []),
  ]);
  return (
    <div class="browser">
      <BucketList of={buckets} selected={bucket} />
      <Split
        pane={
          isGone ? undefined : selected !== "" ? (
            <ObjectPane
              key={selected}
              bucket={bucket}
              objectKey={selected}
              hasVersions={hadVersions}
              hasLock={own?.object_lock === true}
              onChanged={() => void list.reload()}
            />
          ) : own !== undefined ? (
            <BucketPane bucket={own} onChanged={() => buckets.reload()} />
          ) : undefined
        }
        onClosePane={
          selected === "" ? undefined : () => setQuery({ key: undefined, version: undefined })
        }
      >
        <DropZone onDrop={(transfer) => void readDrop(transfer, prefix).then(send)}>
          <h1 class="hidden">{t("Objects of {name}", { name: bucket })}</h1>
          <div class="bar">
            <FolderPath bucket={bucket} prefix={prefix} />
            {own?.has_public_policy === true && <span class="tag tag-warn">{t("public")}</span>}
            <span class="grow" />
            {hadVersions && (
              <label class="check-line">
                <input type="checkbox" checked={withDeleted} onChange={toggleDeleted} />
                {t("Deleted too")}
              </label>
            )}
            <FilterField
              label={t("Starts with")}
              value={start}
              isMono
              onInput={(value) => setQuery({ starts: value }, { replace: true })}
            />
            {chosen.length > 0 && (
              <Action kind="bad" onClick={() => setDialog("delete")} isSmall={false}>
                {t("Delete {n}…", { n: formatNumber(chosen.length) })}
              </Action>
            )}
            <Action onClick={() => setDialog("folder")} isSmall={false}>
              {t("New folder…")}
            </Action>
            <Action kind="primary" icon="up" onClick={choose} isSmall={false}>
              {t("Upload…")}
            </Action>
            <input
              ref={input}
              type="file"
              multiple
              hidden
              onChange={(event) => {
                send(readInput(event.currentTarget.files, prefix));
                event.currentTarget.value = "";
              }}
            />
          </div>
          {isGone ? (
            <Missing to="/storage/buckets" label={t("All buckets")}>
              <ProblemText failure={failure} />
            </Missing>
          ) : (
            failure !== undefined && <Problem failure={failure} retry={() => void list.reload()} />
          )}
          {isGone ? null : rows.length > 0 ? (
            <ObjectTable
              bucket={bucket}
              prefix={prefix}
              rows={rows}
              selected={selected}
              checked={checked}
              onCheck={setChecked}
              onEnd={hasMore ? list.loadMore : undefined}
            />
          ) : isLoading ? (
            <p class="loading" role="status">
              {t("Loading …")}
            </p>
          ) : (
            failure === undefined && <EmptyFolder hasFilter={start !== ""} onUpload={choose} />
          )}
          {hasMore && rows.length >= ROWS_MAX && (
            <p class="bar i2">
              {t("There are more: the first {n} are listed. Type how a key starts to see others.", {
                n: formatNumber(ROWS_MAX),
              })}
            </p>
          )}
          <UploadDock />
        </DropZone>
      </Split>
      {dialog === "folder" && (
        <FolderDialog
          onClose={() => setDialog(undefined)}
          onSubmit={(name) => navigate(folderHref(bucket, `${prefix}${name}/`))}
        />
      )}
      {dialog === "delete" && (
        <DeleteObjects
          bucket={bucket}
          rows={chosen}
          keepsVersions={hasVersions}
          onClose={() => setDialog(undefined)}
          onDone={() => {
            setChecked(new Set());
            void list.reload();
            void buckets.reload();
          }}
        />
      )}
    </div>
  );
}

function BucketList({ of, selected }: { of: Loaded<Bucket[]>; selected: string }) {
  const buckets = of.data.value ?? [];
  return (
    <nav class="bucket-list" aria-label={t("Buckets")}>
      <p class="cap">{t("{n} buckets", { n: formatNumber(buckets.length) })}</p>
      {buckets.map(({ name, bytes }) => (
        <a
          key={name}
          href={href(folderHref(name))}
          aria-current={name === selected ? "page" : undefined}
        >
          <span class="cut">{name}</span>
          <small>{formatBytes(bytes)}</small>
        </a>
      ))}
    </nav>
  );
}

/** A folder as it is shown: `//` has one without a name. */
function nameFolder(name: string): string {
  return name === "" ? "/" : showKey(name);
}

function FolderPath({ bucket, prefix }: { bucket: string; prefix: string }) {
  const folders = [{ name: bucket, prefix: "" }, ...splitPrefix(prefix)];
  return (
    <span class="folder-path mono">
      {folders.map((folder, index) =>
        index === folders.length - 1 ? (
          <b key={folder.prefix}>{nameFolder(folder.name)}</b>
        ) : (
          <span key={folder.prefix}>
            <a href={href(folderHref(bucket, folder.prefix))}>{nameFolder(folder.name)}</a>
            {" / "}
          </span>
        ),
      )}
    </span>
  );
}

function ObjectTable(props: {
  bucket: string;
  prefix: string;
  rows: readonly ListRow[];
  selected: string;
  checked: ReadonlySet<string>;
  onCheck: (ids: ReadonlySet<string>) => void;
  onEnd: (() => void) | undefined;
}) {
  const { bucket, prefix } = props;
  const open = (row: ListRow): void => {
    if (row.kind === "folder") navigate(folderHref(bucket, row.id));
    else setQuery({ key: row.id, version: undefined });
  };
  return (
    <Table
      label={t("Objects")}
      rows={props.rows}
      idOf={({ id }) => id}
      selected={props.selected}
      onSelect={open}
      checked={props.checked}
      onCheck={props.onCheck}
      onEnd={props.onEnd}
      columns={[
        {
          title: t("Name"),
          kind: "mono",
          render: (row) => <NameCell row={row} prefix={prefix} bucket={bucket} />,
        },
        {
          title: t("Size"),
          kind: "w-s",
          isNumber: true,
          render: (row) =>
            row.kind === "folder" ? (
              "–"
            ) : isDeleted(row) ? (
              <span class="i2">{t("deleted")}</span>
            ) : (
              formatBytes(row.object.size)
            ),
        },
        {
          title: t("Changed"),
          kind: "w-s wide-only",
          isNumber: true,
          render: (row) =>
            row.kind === "object" ? (
              <time dateTime={row.object.modified_at} title={formatMoment(row.object.modified_at)}>
                {formatDate(row.object.modified_at)}
              </time>
            ) : (
              "–"
            ),
        },
      ]}
    />
  );
}

function isDeleted(row: ListRow): boolean {
  return row.kind === "object" && row.object.is_delete_marker === true;
}

const IMAGE = /\.(?:png|jpe?g|gif|webp|avif|bmp|ico|svg|tiff?)$/i;

function NameCell({ row, prefix, bucket }: { row: ListRow; prefix: string; bucket: string }) {
  const name = row.id.slice(prefix.length);
  if (row.kind === "folder") {
    return (
      <a class="object-name folder hue-vault" href={href(folderHref(bucket, row.id))}>
        <Icon name="folder" size={15} />
        <span class="cut">{showKey(name)}</span>
      </a>
    );
  }
  return (
    <span class="object-name">
      <Icon name={IMAGE.test(name) ? "image" : "file"} size={15} />
      <span class="cut">{name === "" ? "/" : showKey(name)}</span>
    </span>
  );
}

function EmptyFolder({ hasFilter, onUpload }: { hasFilter: boolean; onUpload: () => void }) {
  if (hasFilter) return <Empty title={t("No key starts like this")} />;
  return (
    <Empty title={t("Drop files here")}>
      <p>{t("Large files go up in parts that are repeated and resumed one by one.")}</p>
      <Action onClick={onUpload} icon="up" isSmall={false}>
        {t("Upload…")}
      </Action>
    </Empty>
  );
}

function DropZone(props: {
  children: preact.ComponentChildren;
  onDrop: (transfer: DataTransfer) => void;
}) {
  const [isOver, setOver] = useState(false);
  return (
    <div
      class={isOver ? "drop-zone over" : "drop-zone"}
      onDragOver={(event) => {
        if (event.dataTransfer?.types.includes("Files") !== true) return;
        event.preventDefault();
        setOver(true);
      }}
      onDragLeave={(event) => {
        if (!event.currentTarget.contains(event.relatedTarget as Node | null)) setOver(false);
      }}
      onDrop={(event) => {
        event.preventDefault();
        setOver(false);
        if (event.dataTransfer !== null) props.onDrop(event.dataTransfer);
      }}
    >
      {props.children}
    </div>
  );
}

/** Calls `reload` once when uploads have written objects, however many they were. */
function useReloadAfterUploads(reload: () => void): void {
  const count = writes.value;
  const known = useRef(count);
  useEffect(() => {
    if (known.current === count) return undefined;
    const timer = setTimeout(() => {
      known.current = count;
      reload();
    }, SETTLE_MS);
    return () => clearTimeout(timer);
  }, [count]);
}
