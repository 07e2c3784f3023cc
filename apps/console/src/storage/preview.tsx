// The beginning of an object: text, or a raster image from a blob. Bytes of users are never a document of this page.
import { useEffect, useState } from "preact/hooks";
import { send } from "../api/api.ts";
import { formatBytes, formatJson } from "../format/format.ts";
import { toFailure } from "../view/load.ts";
import { t } from "../words/words.ts";

const IMAGE_TYPES: ReadonlySet<string> = new Set([
  "image/avif",
  "image/bmp",
  "image/gif",
  "image/jpeg",
  "image/png",
  "image/webp",
]);
const TEXT_TYPE =
  /^(?:text\/|application\/(?:[a-z.+-]*\+)?(?:json|xml)|application\/(?:javascript|x-ndjson|yaml|toml|sql|x-sh))/;
const IMAGE_BYTES_MAX = 10_000_000;
const TEXT_BYTES_MAX = 32_768;

/** Properties of a preview. */
interface PreviewProps {
  url: string;
  name: string;
  /** Media type of the object. */
  type: string;
  size: number;
}

/** The preview; nothing for other types. */
export function Preview(props: PreviewProps) {
  const type = props.type.split(";", 1)[0]!.trim().toLowerCase();
  if (props.size === 0) return null;
  if (IMAGE_TYPES.has(type) && props.size <= IMAGE_BYTES_MAX) {
    return <ImagePreview {...props} type={type} />;
  }
  return TEXT_TYPE.test(type) ? <TextPreview {...props} type={type} /> : null;
}

function ImagePreview({ url, name, type }: PreviewProps) {
  const [source, setSource] = useState<string | undefined>(undefined);
  const [problem, setProblem] = useState("");
  useEffect(() => {
    const stop = new AbortController();
    let created: string | undefined;
    const load = async (): Promise<void> => {
      const response = await send(url, { signal: stop.signal });
      // The type that was checked, not the one of the bytes.
      const blob = new Blob([await response.arrayBuffer()], { type });
      created = URL.createObjectURL(blob);
      setSource(created);
    };
    load().catch((error: unknown) => {
      if (!stop.signal.aborted) setProblem(toFailure(error).message);
    });
    return () => {
      stop.abort();
      if (created !== undefined) URL.revokeObjectURL(created);
    };
  }, [url]);
  return (
    <div class="preview">
      {source !== undefined && problem === "" && (
        <img
          src={source}
          alt={t("Preview of {name}", { name })}
          onError={() => setProblem(t("The bytes are no image of this type."))}
        />
      )}
      {problem !== "" && <p class="i3">{problem}</p>}
    </div>
  );
}

function TextPreview({ url, name, size, type }: PreviewProps) {
  const [text, setText] = useState<string | undefined>(undefined);
  const [problem, setProblem] = useState("");
  useEffect(() => {
    const stop = new AbortController();
    const headers = { range: `bytes=0-${TEXT_BYTES_MAX - 1}` };
    const load = async (): Promise<void> => {
      const response = await send(url, { headers, signal: stop.signal });
      setText(await response.text());
    };
    load().catch((error: unknown) => {
      if (!stop.signal.aborted) setProblem(toFailure(error).message);
    });
    return () => stop.abort();
  }, [url]);
  const isWhole = size <= TEXT_BYTES_MAX;
  return (
    <div class="preview preview-text">
      {text !== undefined && (
        <pre tabIndex={0} aria-label={t("Preview of {name}", { name })}>
          {isWhole && type.endsWith("json") ? formatJson(text) : text}
        </pre>
      )}
      {!isWhole && (
        <p class="i3">{t("The first {size}.", { size: formatBytes(TEXT_BYTES_MAX) })}</p>
      )}
      {problem !== "" && <p class="i3">{problem}</p>}
    </div>
  );
}
