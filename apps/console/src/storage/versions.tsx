// The versions of an object: shown, downloaded, restored and deleted one by one.
import { useEffect, useRef, useState } from "preact/hooks";
import { formatBytes, formatDate, formatMoment, formatNumber } from "../format/format.ts";
import { setQuery } from "../router/router.ts";
import { callService } from "../session/session.ts";
import { Action, IconAction, Section } from "../view/controls.tsx";
import { ConfirmDialog } from "../view/dialog.tsx";
import { Icon } from "../view/icon.tsx";
import { useLoad } from "../view/load.ts";
import { Problem } from "../view/problem.tsx";
import { attempt } from "../view/toast.tsx";
import { t } from "../words/words.ts";
import type { FindDenial } from "./denials.ts";
import {
  bucketPath,
  deleteObjects,
  listObjects,
  objectUrl,
  showKey,
  type StoredObject,
} from "./objects.ts";
import {
  canReadMore,
  type KnownVersions,
  NO_VERSIONS,
  readVersions,
  VERSIONS_MAX,
} from "./version-list.ts";

/** Versions that are shown at first; each click doubles them. */
const SHOWN = 50;
/** Characters of a key's end that confirm a deletion. */
const CONFIRMED_CHARS = 40;

/** Properties of the section. */
interface VersionsProps {
  bucket: string;
  objectKey: string;
  /** The version that the pane shows; undefined for the current one. */
  shown: string | undefined;
  /** Counts changes of locks: the versions are read again. */
  lockChanges: number;
  deny: FindDenial;
  onChanged: () => void;
}

/** The section. */
export function Versions(props: VersionsProps) {
  const { bucket, objectKey: key, shown, lockChanges, deny, onChanged } = props;
  const [gone, setGone] = useState<StoredObject | undefined>(undefined);
  const [max, setMax] = useState(SHOWN);
  const read = (known: KnownVersions<StoredObject>, count: number, signal?: AbortSignal) =>
    readVersions(key, known, count, (cursor, limit) =>
      listObjects(bucket, { prefix: key, versions: true, cursor, limit }, signal),
    );
  const readCount = useRef(1);
  const list = useLoad(`versions ${key}`, (signal) => read(NO_VERSIONS, readCount.current, signal));
  const known: KnownVersions<StoredObject> = list.data.value ?? NO_VERSIONS;
  const { versions, next } = known;
  // As many as before, with one that a change has added.
  readCount.current = versions.length + 1;
  useEffect(() => {
    if (lockChanges > 0) void list.reload();
  }, [lockChanges]);
  const showMore = (): void => {
    void attempt(async () => {
      if (versions.length < max * 2 && canReadMore(known)) list.set(await read(known, max * 2));
      setMax(max * 2);
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
            deny={deny}
            onRestore={() => restore(idOf(one))}
            onDelete={() => setGone(one)}
          />
        ))}
      </div>
      {(versions.length > max || canReadMore(known)) && (
        <Action kind="quiet" onClick={showMore}>
          {next === undefined
            ? t("{n} more", { n: formatNumber(versions.length - max) })
            : t("Older versions")}
        </Action>
      )}
      {next !== undefined && versions.length >= VERSIONS_MAX && versions.length <= max && (
        <p class="hint">
          {t(
            "There are older ones: the newest {n} are listed. ListObjectVersions of S3 lists all.",
            {
              n: note,
            },
          )}
        </p>
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

/** The lock of a version in short, and why it cannot be deleted; undefined if it can. */
function describeLock({ legal_hold: isHeld, retention }: StoredObject) {
  if (isHeld === true) {
    return { mark: t("on hold"), reason: t("A legal hold protects it. Release the hold first.") };
  }
  if (retention === undefined || Date.parse(retention.until) <= Date.now()) return undefined;
  const time = formatMoment(retention.until);
  const reason =
    retention.mode === "COMPLIANCE"
      ? t("It is locked until {time}. Until then no one can delete it.", { time })
      : t("It is locked until {time}. End the retention first.", { time });
  return { mark: t("locked"), reason };
}

function VersionLine(props: {
  bucket: string;
  version: StoredObject;
  isShown: boolean;
  deny: FindDenial;
  onRestore: () => void;
  onDelete: () => void;
}) {
  const { version: one, isShown, deny } = props;
  const isMarker = one.is_delete_marker === true;
  const isCurrent = one.is_latest === true;
  const lock = describeLock(one);
  const time = formatMoment(one.modified_at);
  const name = showKey(one.key.split("/").findLast((part) => part !== "") ?? one.key);
  const unread = deny("read_version");
  return (
    <div class={isShown ? "object-version sel" : "object-version"}>
      <i class={isCurrent ? "now" : ""} />
      <button
        type="button"
        class="mono"
        title={isCurrent ? time : (unread ?? time)}
        aria-pressed={isShown}
        disabled={isMarker || (!isCurrent && unread !== undefined)}
        onClick={() => setQuery({ version: isCurrent ? undefined : idOf(one) })}
      >
        {formatDate(one.modified_at)}
      </button>
      <span class="mono i2">{isMarker ? t("deleted") : formatBytes(one.size)}</span>
      <span class="acts">
        {lock !== undefined && (
          <span class="tag tag-warn" title={lock.reason}>
            {lock.mark}
          </span>
        )}
        {isCurrent && <span class="tag tag-ok">{t("current")}</span>}
        {!isMarker && !isCurrent && (
          <Action kind="quiet" onClick={props.onRestore} blocked={deny("write") ?? unread}>
            {t("Restore")}
          </Action>
        )}
        {!isMarker && unread === undefined && (
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
        <IconAction
          icon="trash"
          label={t("Delete the version of {time}", { time })}
          title={t("Delete…")}
          blocked={lock?.reason ?? deny("delete_version")}
          onClick={props.onDelete}
        />
      </span>
    </div>
  );
}
