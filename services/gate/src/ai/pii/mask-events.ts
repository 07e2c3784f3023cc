// Replaces personal data in the events of a stream: texts of deltas as they go on, all other values at once.
import type { AiShape } from "../shape/ai-shape.ts";
import { type BodyEdit, editBody } from "../shape/edit-body.ts";
import type { StreamEvent } from "../shape/event-splitter.ts";
import type { JsonScanner } from "../shape/json-scan.ts";
import { isDelta, listAnswerTexts, listEntries, readIndex } from "../shape/read-answer.ts";
import { readString } from "../shape/read-request.ts";
import type { PiiSearch } from "./entity.ts";
import { HELD_CHARACTERS_MAX, MaskedText } from "./mask-text.ts";
import { encodeJson, encodePlain, maskSmallTree } from "./mask-tree.ts";
import type { Placeholders } from "./placeholders.ts";

/** Most choices and calls of one stream. */
const CHANNELS_MAX = 512;

/** A text of the stream, with an event that can carry the rest of it. */
interface Channel {
  readonly text: MaskedText;
  /** The last event with this text, and the places of all texts in it. */
  readonly event: KeptEvent;
  places: readonly { readonly channel: string; readonly start: number; readonly end: number }[];
}

/** The last one of several events, and the place of its text without the quotation marks. */
export interface LastEvent {
  readonly raw: Buffer;
  readonly channel: string;
  readonly start: number;
  readonly end: number;
}

/** Options of {@link MaskedEvents}. */
export interface MaskedEventsOptions {
  readonly shape: AiShape;
  readonly search: PiiSearch;
  readonly placeholders: Placeholders;
  /** Receives the texts with all placeholders, also those whose values come back. */
  readonly collect?: (channel: string, text: string) => void;
}

/** The events of one stream. */
export class MaskedEvents {
  readonly #shape: AiShape;
  readonly #search: PiiSearch;
  readonly #placeholders: Placeholders;
  readonly #collect: MaskedEventsOptions["collect"];
  readonly #channels = new Map<string, Channel>();
  /** Something else than a text of a delta was replaced in the last event. */
  hasEdits = false;

  constructor({ shape, search, placeholders, collect }: MaskedEventsOptions) {
    this.#shape = shape;
    this.#search = search;
    this.#placeholders = placeholders;
    this.#collect = collect;
  }

  /** The bytes that leave for an event, whose data is in `scanner`: before it the rest of texts that it ends. */
  rewrite(event: StreamEvent, scanner: JsonScanner): Buffer[] {
    const isEnded = this.#readEnds(scanner);
    const texts = isDelta(this.#shape, scanner) ? listAnswerTexts(this.#shape, scanner) : [];
    const edits: BodyEdit[] = maskSmallTree(scanner, {
      search: this.#search,
      placeholders: this.#placeholders,
      restores: true,
      skipped: new Set(texts.map(({ node }) => node)),
    });
    this.hasEdits = edits.length > 0;
    const places = texts.map(({ node, channel }) => ({
      channel,
      start: scanner.start(node),
      end: scanner.end(node),
    }));
    for (const { node, channel } of texts) {
      const piece = scanner.text(node);
      const state = this.#find(channel);
      const masked = state.text.push(piece) + (isEnded(channel) ? state.text.end() : "");
      if (state.text.isHolding) {
        state.event.keep(event);
        state.places = places;
      }
      const place = { start: scanner.start(node), end: scanner.end(node) };
      if (masked !== piece) edits.push({ ...place, text: JSON.stringify(masked) });
    }
    const ended = [...this.#channels.keys()].filter((channel) => isEnded(channel));
    const rest = ended.flatMap((channel) => this.#flush(channel));
    return [...rest, composeEvent(event, edits)];
  }

  /**
   * Masks the joined `text` of events that differ in their text only. `raw` is the last of them, with its text at
   * `[start, end)`.
   */
  pushText(text: string, { raw, channel, start, end }: LastEvent): string {
    const state = this.#find(channel);
    const masked = state.text.push(text);
    if (state.text.isHolding) {
      state.event.keep({ raw, data: raw, dataStart: 0 });
      state.places = [{ channel, start: start - 1, end: end + 1 }];
    }
    return masked;
  }

  /** The rest of all texts: the stream has ended. */
  end(): Buffer[] {
    return [...this.#channels.keys()].flatMap((channel) => this.#flush(channel));
  }

  #find(channel: string): Channel {
    const known = this.#channels.get(channel);
    if (known !== undefined) return known;
    if (this.#channels.size >= CHANNELS_MAX) throw new Error("The answer has too many parts.");
    const isReversible = this.#placeholders.isReversible;
    const encode = /call|partial_json/.test(channel) ? encodeJson : encodePlain;
    const text = new MaskedText({
      search: this.#search,
      placeholders: this.#placeholders,
      encode: isReversible ? encode : undefined,
      heldMax: HELD_CHARACTERS_MAX,
      ...(this.#collect && { collect: (masked) => this.#collect!(channel, masked) }),
    });
    const created: Channel = { text, event: new KeptEvent(), places: [] };
    this.#channels.set(channel, created);
    return created;
  }

  // Tells the channels whose text ends with this event, or before it.
  #readEnds(scanner: JsonScanner): (channel: string) => boolean {
    if (this.#shape !== "chat" && this.#shape !== "completions") {
      const isEnd = !isDelta(this.#shape, scanner);
      return () => isEnd;
    }
    const ended = new Set<string>();
    for (const choice of listEntries(scanner, 0, "choices")) {
      if (readString(scanner, choice, "finish_reason") === "") continue;
      ended.add(readIndex(scanner, choice));
    }
    return (channel) => ended.size > 0 && ended.has(channel.split(" ")[0]!);
  }

  #flush(channel: string): Buffer[] {
    const state = this.#channels.get(channel);
    if (state === undefined || !state.text.isHolding) return [];
    const rest = state.text.end();
    // The event once more, with nothing but the rest of this text.
    const edits = state.places.map(({ channel: other, start, end }) => ({
      start,
      end,
      text: JSON.stringify(other === channel ? rest : ""),
    }));
    return [composeEvent(state.event.read(), edits)];
  }
}

/** A copy of the last event of a text, in memory that the next one uses again. */
class KeptEvent {
  #bytes = Buffer.alloc(0);
  #length = 0;
  #dataStart = -1;
  /** Data of several lines, which is no range of the event. */
  #data = Buffer.alloc(0);
  #dataLength = 0;

  keep({ data, raw, dataStart }: StreamEvent): void {
    if (raw.length > this.#bytes.length) this.#bytes = Buffer.allocUnsafe(raw.length * 2);
    raw.copy(this.#bytes);
    this.#length = raw.length;
    this.#dataStart = dataStart;
    this.#dataLength = data.length;
    if (dataStart === -1) this.#data = Buffer.from(data);
  }

  read(): StreamEvent {
    const raw = this.#bytes.subarray(0, this.#length);
    const dataStart = this.#dataStart;
    const data =
      dataStart === -1 ? this.#data : raw.subarray(dataStart, dataStart + this.#dataLength);
    return { raw, data, dataStart };
  }
}

/** An event with changes of its data. */
function composeEvent({ data, raw, dataStart }: StreamEvent, edits: readonly BodyEdit[]): Buffer {
  if (edits.length === 0) return raw;
  if (dataStart !== -1) {
    const moved = edits.map(({ start, end, text }) => ({
      start: start + dataStart,
      end: end + dataStart,
      text,
    }));
    return editBody(raw, moved);
  }
  const changed = editBody(data, edits);
  // Data of several lines becomes one: line ends in JSON are spaces.
  const lines = raw.toString("utf8").split(/\r\n|\n|\r/);
  const others = lines.filter((line) => line !== "" && !/^data(?::|$)/.test(line));
  const json = changed.toString("utf8").replaceAll("\n", " ");
  return Buffer.from([...others, `data: ${json}`, "", ""].join("\n"));
}
