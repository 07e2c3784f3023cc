// The chosen object: preview, facts, versions, link, deletion.
import { useRef, useState } from "preact/hooks";
import { send } from "../api/api.ts";
import { formatBytes, formatDate, formatMoment, formatNumber } from "../format/format.ts";
import { queryValue, setQuery } from "../router/router.ts";
import { api, callService } from "../session/session.ts";
import { useCommands } from "../stage/stage.ts";
import { Action, FactRow, Facts, Section } from "../view/controls.tsx";
import { ConfirmDialog } from "../view/dialog.tsx";
import { Icon } from "../view/icon.tsx";
import { useLoad } from "../view/load.ts";
import { Loading, Problem } from "../view/problem.tsx";
import { attempt, runUnlessUndone } from "../view/toast.tsx";
import { t } from "../words/words.ts";
import { Preview } from "./preview.tsx";
import { ShareDialog } from "./share-dialog.tsx";
import {
  bucketPath,
  deleteObjects,
  listObjects,
  objectPath,
  objectUrl,
  type StoredObject,
} from "./objects.ts";

const VERSIONS_SHOWN = 50;

/** Properties of the pane. */
interface ObjectPaneProps {
  bucket: string;
  objectKey: string;
  /** True if the bucket has, or had, versions. */
  hasVersions: boolean;
  onChanged: () => void;
}

/** The pane. */
export function ObjectPane(props: ObjectPaneProps) {
  const { bucket, objectKey: key, hasVersions } = props;
  const version = queryValue("version") || undefined;
  const [isShared, setShared] = useState(false);
  const head = useLoad(`head ${key} ${version ?? ""}`, async (signal) => {
    const path = api("vault", objectPath(bucket, key, version));
    const { headers } = await send(path, { method: "HEAD", signal });
    return headers;
  });
  const name = key.split("/").findLast((part) => part !== "") ?? key;
  const remove = (): void => {
    runUnlessUndone(t("Deleting {name}", { name }), async () => {
      const [error] = await deleteObjects(bucket, [{ key }]);
      if (error !== undefined) throw new Error(error.message);
      setQuery({ key: undefined, version: undefined });
      props.onChanged();
    });
  };
  const url = objectUrl(bucket, key, version);
  const link = useRef<HTMLAnchorElement>(null);
  useCommands([
    { label: t("Download"), key: "d", icon: "down", run: () => link.current?.click() },
    { label: t("Share…"), key: "s", icon: "next", run: () => setShared(true) },
  ]);
  return (
    <>
      <Loading of={head}>
        {(headers) => (
          <>
            <Preview
              key={headers.get("etag") ?? ""}
              url={url}
              name={name}
              type={headers.get("content-type") ?? ""}
              size={Number(headers.get("content-length") ?? 0)}
            />
            <section class="sec">
              <div class="object-head">
                <h2 class="mono wrap">{name}</h2>
                <span class="acts">
                  <a ref={link} class="btn sm" href={url} download={name}>
                    <Icon name="down" size={13} />
                    {t("Download")}
                  </a>
                  <Action onClick={() => setShared(true)}>{t("Share…")}</Action>
                  <Action onClick={remove} kind="bad">
                    {t("Delete")}
                  </Action>
                </span>
              </div>
              <ObjectFacts headers={headers} objectKey={key} />
            </section>
          </>
        )}
      </Loading>
      {hasVersions && (
        <Versions
          {...props}
          shown={version}
          onChanged={() => {
            void head.reload();
            props.onChanged();
          }}
        />
      )}
      {isShared && (
        <ShareDialog
          bucket={bucket}
          objectKey={key}
          version={version}
          onClose={() => setShared(false)}
        />
      )}
    </>
  );
}

function ObjectFacts({ headers, objectKey }: { headers: Headers; objectKey: string }) {
  const value = (name: string): string | null => headers.get(name);
  const metadata = [...headers].filter(([name]) => name.startsWith("x-amz-meta-"));
  const checksums = [...headers].filter(([name]) => /^x-amz-checksum-(?!type)/.test(name));
  return (
    <Facts>
      <FactRow term={t("Key")} isMono>
        {objectKey}
      </FactRow>
      <FactRow term={t("Type")} isMono>
        {value("content-type") ?? "–"}
      </FactRow>
      <FactRow term={t("Size")} isMono>
        {formatNumber(Number(value("content-length") ?? 0))} B
      </FactRow>
      <FactRow term={t("Changed")}>{formatMoment(value("last-modified"))}</FactRow>
      <FactRow term="ETag" isMono>
        {(value("etag") ?? "–").replaceAll('"', "")}
      </FactRow>
      {checksums.map(([name, text]) => (
        <FactRow key={name} term={name.slice("x-amz-checksum-".length).toUpperCase()} isMono>
          {text}
        </FactRow>
      ))}
      {value("x-amz-server-side-encryption") !== null && (
        <FactRow term={t("Encryption")} isMono>
          {value("x-amz-server-side-encryption")}
        </FactRow>
      )}
      {value("x-amz-object-lock-mode") !== null && (
        <FactRow term={t("Locked until")}>
          {formatMoment(value("x-amz-object-lock-retain-until-date"))} (
          {value("x-amz-object-lock-mode")})
        </FactRow>
      )}
      {value("x-amz-tagging-count") !== null && (
        <FactRow term={t("Tags")}>{value("x-amz-tagging-count")}</FactRow>
      )}
      {metadata.map(([name, text]) => (
        <FactRow key={name} term={name.slice("x-amz-meta-".length)} isMono>
          {text}
        </FactRow>
      ))}
    </Facts>
  );
}

function Versions(props: ObjectPaneProps & { shown: string | undefined }) {
  const { bucket, objectKey: key, shown } = props;
  const [gone, setGone] = useState<StoredObject | undefined>(undefined);
  const list = useLoad(`versions ${key}`, async (signal) => {
    const page = await listObjects(bucket, { prefix: key, versions: true }, signal);
    return page.items.filter((one) => one.key === key);
  });
  const versions = list.data.value ?? [];
  const restore = (version: string): void => {
    void attempt(async () => {
      const json = { source_key: key, source_version: version, key };
      await callService("vault", bucketPath(bucket, "/copy"), { method: "POST", json });
      await list.reload();
      setQuery({ version: undefined });
      props.onChanged();
    }, t("Restored as the newest version."));
  };
  return (
    <Section title={t("Versions")} note={formatNumber(versions.length)}>
      {list.failure.value !== undefined && <Problem failure={list.failure.value} />}
      <div class="versions">
        {versions.slice(0, VERSIONS_SHOWN).map((one) => (
          <div key={one.version} class={one.version === shown ? "version sel" : "version"}>
            <i class={one.is_latest === true ? "now" : ""} />
            <button
              type="button"
              class="mono"
              title={formatMoment(one.modified_at)}
              disabled={one.is_delete_marker === true}
              onClick={() => setQuery({ version: one.version })}
            >
              {formatDate(one.modified_at)}
            </button>
            <span class="mono i2">
              {one.is_delete_marker === true ? t("deleted") : formatBytes(one.size)}
            </span>
            {one.is_latest === true ? (
              <span class="tag tag-ok">{t("current")}</span>
            ) : (
              <span class="acts">
                {one.is_delete_marker !== true && (
                  <Action kind="quiet" onClick={() => restore(one.version ?? "null")}>
                    {t("Restore")}
                  </Action>
                )}
                <Action kind="quiet" icon="trash" onClick={() => setGone(one)}>
                  {t("Delete…")}
                </Action>
              </span>
            )}
          </div>
        ))}
      </div>
      {gone !== undefined && (
        <ConfirmDialog
          title={t("Delete a version")}
          name={key.slice(-40)}
          submit={t("Delete")}
          onClose={() => setGone(undefined)}
          onSubmit={async () => {
            const target = { key, version: gone.version ?? "null" };
            const [error] = await deleteObjects(bucket, [target]);
            if (error !== undefined) throw new Error(error.message);
            await list.reload();
          }}
        >
          <p>
            {t("The version of {time}, {size}, will be gone for good.", {
              time: formatMoment(gone.modified_at),
              size: formatBytes(gone.size),
            })}
          </p>
        </ConfirmDialog>
      )}
    </Section>
  );
}
