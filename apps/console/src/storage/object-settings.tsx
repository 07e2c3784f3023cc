// Tags and locks of an object or a version.
import type { Answer } from "../contract/answer.ts";
import { useState } from "preact/hooks";
import { withQuery } from "../api/api.ts";
import type { Versioned } from "../api/versioned.ts";
import { callService } from "../session/session.ts";
import { Action, Section } from "../view/controls.tsx";
import { useLoad } from "../view/load.ts";
import { Loading } from "../view/problem.tsx";
import { attempt } from "../view/toast.tsx";
import { t } from "../words/words.ts";
import { KnownValueConflict, readValue, useKnownValue } from "./known-value.tsx";
import type { FindDenial } from "./denials.ts";
import { ObjectLock } from "./object-lock.tsx";
import { bucketPath, objectPath } from "./objects.ts";
import { type Tag, TagDialog } from "./tag-dialog.tsx";

/** Limit of S3. */
const TAGS_MAX = 10;

/** Members of the description that are used here. */
type Described = Answer<"vault", "GET /buckets/{bucket}/object">;

/** Tags as their dialog reads them. */
type StoredTags = Answer<"vault", "GET /buckets/{bucket}/object/tags">;

export function ObjectSettings(props: {
  bucket: string;
  objectKey: string;
  version: string | undefined;
  hasLock: boolean;
  deny: FindDenial;
  onLockChanged: () => void;
}) {
  const { bucket, objectKey: key, version, hasLock, deny } = props;
  const [edited, setEdited] = useState<Versioned<StoredTags> | undefined>(undefined);
  const loaded = useLoad(`info ${key} ${version ?? ""}`, (signal) =>
    callService<Described>("vault", `${objectPath(bucket, key, version)}&info=true`, { signal }),
  );
  const pathOf = (part: string): string =>
    withQuery(bucketPath(bucket, `/object/${part}`), { key, version });
  // Those of now with their version, not those that the page has shown for a while.
  const editTags = (): void => {
    void attempt(async () => {
      setEdited(await readValue<StoredTags>(pathOf("tags")));
    });
  };
  return (
    <Loading of={loaded}>
      {({ version: shown, tags, retention, legal_hold: isHeld }) => (
        <>
          <Section
            title={t("Tags")}
            action={
              <Action
                kind="quiet"
                onClick={editTags}
                blocked={tags === null ? t("No policy allows reading its tags") : deny("tags")}
              >
                {t("Edit tags…")}
              </Action>
            }
          >
            <p class="tags">
              {Object.entries(tags ?? {}).map(([name, value]) => (
                <span key={name} class="tag mono wrap">
                  {`${name}=${value}`}
                </span>
              ))}
              {tags !== null && Object.keys(tags).length === 0 && (
                <span class="i3">{t("none")}</span>
              )}
            </p>
          </Section>
          {hasLock && (
            <ObjectLock
              pathOf={pathOf}
              version={shown}
              retention={retention}
              isHeld={isHeld}
              deny={deny}
              onChanged={async () => {
                await loaded.reload();
                props.onLockChanged();
              }}
            />
          )}
          {edited !== undefined && (
            <ObjectTags
              title={t("Tags of {name}", { name: key.slice(-60) })}
              read={edited}
              path={pathOf("tags")}
              onClose={() => setEdited(undefined)}
              onSaved={() => loaded.reload()}
            />
          )}
        </>
      )}
    </Loading>
  );
}

function ObjectTags(props: {
  title: string;
  read: Versioned<StoredTags>;
  path: string;
  onClose: () => void;
  onSaved: () => Promise<void>;
}) {
  const known = useKnownValue(props.path, props.read);
  return (
    <TagDialog
      title={props.title}
      tags={props.read.document?.tags ?? []}
      tagsMax={TAGS_MAX}
      onClose={props.onClose}
      onSubmit={async (tags) => {
        const outcome = await known.write({ method: "PUT", json: { tags } });
        await props.onSaved();
        return outcome;
      }}
    >
      {(tags) => (
        <KnownValueConflict
          of={known}
          stored={describeTags(known.stored?.tags ?? [])}
          edited={describeTags(tags)}
        />
      )}
    </TagDialog>
  );
}

function describeTags(tags: readonly Tag[]): string {
  return tags.map(({ key, value }) => `${key}=${value}`).join("\n");
}
