// A dialog for the tags of a bucket or an object.
import type { Answer } from "../contract/answer.ts";
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { Action } from "../view/controls.tsx";
import { FormDialog } from "../view/dialog.tsx";
import { t } from "../words/words.ts";

/** A tag. */
export type Tag = Answer<"vault", "GET /buckets/{bucket}/object/tags">["tags"][number];

const KEY_MAX = 128;
const VALUE_MAX = 256;

export function TagDialog(props: {
  title: string;
  tags: readonly Tag[];
  tagsMax: number;
  onClose: () => void;
  onSubmit: (tags: Tag[]) => Promise<unknown>;
  /** Below the tags, by those that would be saved. */
  children?: (tags: readonly Tag[]) => ComponentChildren;
}) {
  const { tagsMax } = props;
  const [tags, setTags] = useState<readonly Tag[]>(
    props.tags.length === 0 ? [{ key: "", value: "" }] : props.tags,
  );
  const set = (index: number, change: Partial<Tag>): void => {
    setTags(tags.map((one, at) => (at === index ? { ...one, ...change } : one)));
  };
  const filled = tags.filter(({ key, value }) => key !== "" || value !== "");
  return (
    <FormDialog
      title={props.title}
      submit={t("Save")}
      onClose={props.onClose}
      onSubmit={() => props.onSubmit(filled)}
    >
      {tags.map(({ key, value }, index) => (
        // Rows have no identity but their place.
        // oxlint-disable-next-line react/no-array-index-key
        <div key={index} class="tag-row">
          <input
            class="field mono"
            aria-label={t("Key of tag {n}", { n: index + 1 })}
            placeholder={t("Key")}
            maxLength={KEY_MAX}
            value={key}
            onInput={(event) => set(index, { key: event.currentTarget.value })}
          />
          <input
            class="field mono"
            aria-label={t("Value of tag {n}", { n: index + 1 })}
            placeholder={t("Value")}
            maxLength={VALUE_MAX}
            value={value}
            onInput={(event) => set(index, { value: event.currentTarget.value })}
          />
          <Action kind="quiet" onClick={() => setTags(tags.filter((_, at) => at !== index))}>
            {t("Remove")}
          </Action>
        </div>
      ))}
      <Action
        onClick={() => setTags([...tags, { key: "", value: "" }])}
        blocked={tags.length >= tagsMax ? t("{n} tags are the limit.", { n: tagsMax }) : undefined}
      >
        {t("Add a tag")}
      </Action>
      <p class="hint">{t("Letters, digits, spaces and _ . : / = + - @")}</p>
      {props.children?.(filled)}
    </FormDialog>
  );
}
