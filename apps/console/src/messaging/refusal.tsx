// The reason for which a topic refuses messages, and the way out.
import { formatNumber } from "../format/format.ts";
import { href } from "../router/router.ts";
import { t } from "../words/words.ts";
import type { Topic } from "./messages.ts";
import { topicPath } from "./paths.ts";

/** A banner while the topic refuses messages. */
export function Refusal({ topic }: { topic: Topic }) {
  const { name, queue_depth: depth, queue_depth_max: max, queue_counts: counts } = topic;
  if (max === null || depth < max) return null;
  return (
    <div class="banner" role="status">
      <b>
        {t("Publishing is refused: {n} messages wait, and {max} may.", {
          n: formatNumber(depth),
          max: formatNumber(max),
        })}
      </b>
      {counts === "groups" ? (
        <>
          {t("The slowest group has not read them. Start its consumers, or move it to the end.")}{" "}
          <a href={href(topicPath(name, "groups"))}>{t("Groups of this topic")}</a>
        </>
      ) : (
        <>
          {t(
            "They were published over HTTP, and no one has read them. A tail does not count for what came before it. Subscribe from the earliest message, read with a Kafka client, or let a group read the topic:",
          )}{" "}
          <code class="wrap">{`GET /api/v1/subscribe/${name}?from=earliest`}</code>
        </>
      )}
    </div>
  );
}
