// The chosen object: preview, facts, versions, link, deletion.
import { useRef, useState } from "preact/hooks";
import { send } from "../api/api.ts";
import { formatMoment, formatNumber } from "../format/format.ts";
import { path, queryValue, setQuery } from "../router/router.ts";
import { api } from "../session/session.ts";
import { useCommands } from "../stage/stage.ts";
import { Action, FactRow, Facts, Section } from "../view/controls.tsx";
import { CopyButton } from "../view/copy.tsx";
import { Icon } from "../view/icon.tsx";
import { useLoad } from "../view/load.ts";
import { Loading } from "../view/problem.tsx";
import { runUnlessUndone } from "../view/toast.tsx";
import { t } from "../words/words.ts";
import { CopyDialog } from "./copy-dialog.tsx";
import { useObjectDenials } from "./denials.ts";
import { ObjectSettings } from "./object-settings.tsx";
import { Preview } from "./preview.tsx";
import { ShareDialog } from "./share-dialog.tsx";
import { deleteObjects, objectPath, objectUrl, showKey } from "./objects.ts";
import { Versions } from "./versions.tsx";

/** Properties of the pane. */
interface ObjectPaneProps {
  bucket: string;
  objectKey: string;
  /** True if the bucket has, or had, versions. */
  hasVersions: boolean;
  /** True if the bucket has object lock. */
  hasLock: boolean;
  onChanged: () => void;
}

export function ObjectPane(props: ObjectPaneProps) {
  const { bucket, objectKey: key, hasVersions } = props;
  const version = queryValue("version") || undefined;
  const [isShared, setShared] = useState(false);
  const [isCopying, setCopying] = useState(false);
  const [lockChanges, setLockChanges] = useState(0);
  const deny = useObjectDenials(bucket, key, version);
  const head = useLoad(`head ${key} ${version ?? ""}`, async (signal) => {
    const path = api("vault", objectPath(bucket, key, version));
    const { headers } = await send(path, { method: "HEAD", signal });
    return headers;
  });
  const name = key.split("/").findLast((part) => part !== "") ?? key;
  const remove = (): void => {
    const place = path.value;
    runUnlessUndone({
      key: `object ${bucket}/${key}`,
      text: t("Deleting {name}", { name }),
      run: async () => {
        const [error] = await deleteObjects(bucket, [{ key }]);
        if (error !== undefined) throw new Error(error.message);
        // Meanwhile the user may have opened another one.
        if (path.value === place && queryValue("key") === key)
          setQuery({ key: undefined, version: undefined }, { replace: true });
        props.onChanged();
      },
    });
  };
  const url = objectUrl(bucket, key, version);
  const link = useRef<HTMLAnchorElement>(null);
  useCommands([
    { label: t("Download"), key: "d", icon: "down", run: () => link.current?.click() },
    ...(findShareFault(key) === undefined
      ? [{ label: t("Share…"), key: "s", icon: "next" as const, run: () => setShared(true) }]
      : []),
    { label: t("Copy or move…"), key: "c", icon: "folder", run: () => setCopying(true) },
  ]);
  const isGone = hasVersions && [404, 405].includes(head.failure.value?.status ?? 0);
  return (
    <>
      {isGone && <GoneObject name={name} isVersion={version !== undefined} />}
      {!isGone && (
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
                  <h2 class="mono wrap" title={showKey(name)}>
                    {showKey(name)}
                  </h2>
                  <span class="acts">
                    <a ref={link} class="btn sm" href={url} download={name}>
                      <Icon name="down" size={13} />
                      {t("Download")}
                    </a>
                    <Action onClick={() => setShared(true)} blocked={findShareFault(key)}>
                      {t("Share…")}
                    </Action>
                    <Action onClick={() => setCopying(true)}>{t("Copy or move…")}</Action>
                    <Action onClick={remove} kind="bad" blocked={deny("delete")}>
                      {t("Delete")}
                    </Action>
                  </span>
                </div>
                <ObjectFacts headers={headers} objectKey={key} />
              </section>
              <ObjectSettings
                bucket={bucket}
                objectKey={key}
                version={version}
                hasLock={props.hasLock}
                deny={deny}
                onLockChanged={() => {
                  setLockChanges((count) => count + 1);
                  void head.reload();
                }}
              />
            </>
          )}
        </Loading>
      )}
      {hasVersions && (
        <Versions
          bucket={bucket}
          objectKey={key}
          shown={version}
          lockChanges={lockChanges}
          deny={deny}
          onChanged={() => {
            void head.reload();
            props.onChanged();
          }}
        />
      )}
      {isCopying && (
        <CopyDialog
          bucket={bucket}
          objectKey={key}
          version={version}
          onClose={() => setCopying(false)}
          onDone={(isMoved) => {
            if (isMoved) setQuery({ key: undefined, version: undefined });
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

/** Why no link can reach a key; undefined if one can. */
function findShareFault(key: string): string | undefined {
  return key.split("/").some((part) => part === "." || part === "..")
    ? t("Browsers resolve the segments . and .. in links.")
    : undefined;
}

/** In place of the facts of what was deleted. */
function GoneObject({ name, isVersion }: { name: string; isVersion: boolean }) {
  return (
    <Section title={showKey(name)}>
      <p class="i2">
        {isVersion
          ? t("This version was deleted.")
          : t("The object is deleted. Its versions can be restored.")}
      </p>
    </Section>
  );
}

function ObjectFacts({ headers, objectKey }: { headers: Headers; objectKey: string }) {
  const value = (name: string): string | null => headers.get(name);
  const metadata = [...headers].filter(([name]) => name.startsWith("x-amz-meta-"));
  const checksums = [...headers].filter(([name]) => /^x-amz-checksum-(?!type)/.test(name));
  return (
    <Facts>
      <FactRow term={t("Key")} isMono>
        <span class="key-fact">
          <span class="cut">{showKey(objectKey)}</span>
          <CopyButton text={objectKey} label={t("Copy the key")} />
        </span>
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
      {metadata.map(([name, text]) => (
        <FactRow key={name} term={name.slice("x-amz-meta-".length)} isMono>
          {text}
        </FactRow>
      ))}
    </Facts>
  );
}
