// The difference of two contents of a template, part by part.
import { Diff } from "../view/diff.tsx";
import { t } from "../words/words.ts";
import { PARTS, type Draft } from "./template.ts";

/** Shows the parts that differ. */
export function ContentDiff({ before, after }: { before: Draft; after: Draft }) {
  const labels = { subject: t("Subject"), html: "HTML", text: t("Text") };
  const changed = PARTS.filter((part) => before[part] !== after[part]);
  if (changed.length === 0) return <p>{t("There is no difference.")}</p>;
  return (
    <>
      {changed.map((part) => (
        <section key={part} class="mail-diff">
          <h3>{labels[part]}</h3>
          <Diff before={before[part]} after={after[part]} label={labels[part]} />
        </section>
      ))}
    </>
  );
}
