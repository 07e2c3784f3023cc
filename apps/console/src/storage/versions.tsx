// The versions of an object: shown, downloaded, restored and deleted one by one.
import { useState } from "preact/hooks";
import { formatBytes, formatDate, formatMoment, formatNumber } from "../format/format.ts";
import { setQuery } from "../router/router.ts";
import { callService } from "../session/session.ts";
import { Action, Section } from "../view/controls.tsx";
import { ConfirmDialog } from "../view/dialog.tsx";
import { Icon } from "../view/icon.tsx";
import { useLoad } from "../view/load.ts";
import { Problem } from "../view/problem.tsx";
import { attempt } from "../view/toast.tsx";
import { t } from "../words/words.ts";
import {
  bucketPath,
  deleteObjects,
  listObjects,
  objectUrl,
  showKey,
  type StoredObject,
} from "./objects.ts";

/** Versions that are shown, and added by each click. */
const STEP = 50;
/** Versions of one request. */
const PAGE = 200;
/** Versions that the pane reads. */
const VERSIONS_MAX = 10_000;
/** Characters of a key's end that confirm a deletion. */
const CONFIRMED_CHARS = 40;

/** Properties of the section. */
interface VersionsProps {
  bucket: string;
  objectKey: string;
  /** The version that the pane shows; undefined for the current one. */
  shown: string | undefined;
  onChanged: () => void;
}

/** Versions of a key, the newest first. */
interface KnownVersions {
  versions: readonly StoredObject[];
  /** Continues after them; undefined if these are all. */
  next: string | undefined;
}

/** Reads further versions after known ones, or the newest. */
async function readVersions(
  bucket: string,
  key: string,
  { versions, next: cursor }: KnownVersions,
  signal?: AbortSignal,
): Promise<KnownVersions> {
  const page = await listObjects(
    bucket,
    { prefix: key, versions: true, cursor, limit: PAGE },
    signal,
  );
  const own = page.items.filter((one) => one.key === key);
  // The key's own versions come first: other keys on the page mean that these are all.
  const isWhole = page.next_cursor === null || own.length < page.items.length;
  return { versions: [...versions, ...own], next: isWhole ? undefined : page.next_cursor! };
}

const NONE: KnownVersions = { versions: [], next: undefined };

/** The section. */
export function Versions({ bucket, objectKey: key, shown, onChanged }: VersionsProps) {
  const [gone, setGone] = useState<StoredObject | undefined>(undefined);
  const [max, setMax] = useState(STEP);
  const list = useLoad(`versions ${key}`, (signal) => readVersions(bucket, key, NONE, signal));
  const known = list.data.value ?? NONE;
  const { versions, next } = known;
  const mayRead = next !== undefined && versions.length < VERSIONS_MAX;
  const showMore = (): void => {
    void attempt(async () => {
      const isShort = versions.length < max + STEP && mayRead;
      if (isShort) list.set(await readVersions(bucket, key, known));
      setMax(max + STEP);
    });
  };
  const change = async (): Promise<void> => {
    await list.reload();
    onChanged();
  };
  const restore = (version: string): void => {
    void attempt(async () => {
      const json = { source_key: key, source_version: version, key };
      await callService("vault", bucketPath(bucket, "/copy"), { method: "POST", json });
      setQuery({ version: undefined });
      await change();
    }, t("Restored as the newest version."));
  };
  const note = formatNumber(versions.length);
  return (
    <Section
      title={t("Versions")}
      note={next === undefined ? note : t("the newest {n}", { n: note })}
    >
      {list.failure.value !== undefined && <Problem failure={list.failure.value} />}
      <div class="object-versions">
        {versions.slice(0, max).map((one) => (
          <VersionLine
            key={one.version}
            bucket={bucket}
            version={one}
            isShown={shown === undefined ? one.is_latest === true : one.version === shown}
            onRestore={() => restore(idOf(one))}
            onDelete={() => setGone(one)}
          />
        ))}
      </div>
      {(versions.length > max || mayRead) && (
        <Action kind="quiet" onClick={showMore}>
          {next === undefined
            ? t("{n} more", { n: formatNumber(versions.length - max) })
            : t("Older versions")}
        </Action>
      )}
      {gone !== undefined && (
        <ConfirmDialog
          title={
            gone.is_delete_marker === true ? t("Delete a delete marker") : t("Delete a version")
          }
          name={key.slice(-CONFIRMED_CHARS)}
          submit={t("Delete")}
          onClose={() => setGone(undefined)}
          onSubmit={async () => {
            const [error] = await deleteObjects(bucket, [{ key, version: idOf(gone) }]);
            if (error !== undefined) throw new Error(error.message);
            if (idOf(gone) === shown) setQuery({ version: undefined });
            await change();
          }}
        >
          <p>{describeLoss(gone, versions)}</p>
        </ConfirmDialog>
      )}
    </Section>
  );
}

function idOf({ version = "null" }: StoredObject): string {
  return version;
}

function describeLoss(gone: StoredObject, versions: readonly StoredObject[]): string {
  const values = { time: formatMoment(gone.modified_at), size: formatBytes(gone.size) };
  if (gone.is_delete_marker === true) {
    return gone.is_latest === true
      ? t(
          "The delete marker of {time} will be gone: the version before it is current again.",
          values,
        )
      : t("The delete marker of {time} will be gone.", values);
  }
  if (gone.is_latest !== true)
    return t("The version of {time}, {size}, will be gone for good.", values);
  return versions.length === 1
    ? t(
        "The only version, of {time}, {size}, will be gone for good, and the object with it.",
        values,
      )
    : t(
        "The current version, of {time}, {size}, will be gone for good; what came before it is current again.",
        values,
      );
}

function VersionLine(props: {
  bucket: string;
  version: StoredObject;
  isShown: boolean;
  onRestore: () => void;
  onDelete: () => void;
}) {
  const { version: one, isShown } = props;
  const isMarker = one.is_delete_marker === true;
  const isCurrent = one.is_latest === true;
  const time = formatMoment(one.modified_at);
  const name = showKey(one.key.split("/").findLast((part) => part !== "") ?? one.key);
  return (
    <div class={isShown ? "object-version sel" : "object-version"}>
      <i class={isCurrent ? "now" : ""} />
      <button
        type="button"
        class="mono"
        title={time}
        aria-pressed={isShown}
        disabled={isMarker}
        onClick={() => setQuery({ version: isCurrent ? undefined : idOf(one) })}
      >
        {formatDate(one.modified_at)}
      </button>
      <span class="mono i2">{isMarker ? t("deleted") : formatBytes(one.size)}</span>
      <span class="acts">
        {isCurrent && <span class="tag tag-ok">{t("current")}</span>}
        {!isMarker && !isCurrent && (
          <Action kind="quiet" onClick={props.onRestore}>
            {t("Restore")}
          </Action>
        )}
        {!isMarker && (
          <a
            class="icon-btn"
            href={objectUrl(props.bucket, one.key, idOf(one))}
            download={name}
            aria-label={t("Download the version of {time}", { time })}
            title={t("Download")}
          >
            <Icon name="down" size={13} />
          </a>
        )}
        <button
          type="button"
          class="icon-btn"
          aria-label={t("Delete the version of {time}", { time })}
          title={t("Delete…")}
          onClick={props.onDelete}
        >
          <Icon name="trash" size={13} />
        </button>
      </span>
    </div>
  );
}
