// Recent activity, sampled: messages per second of topics, and the lag of groups over the last ten minutes.
import { every, type Clock, type RepeatingTimer } from "@platform/kernel/time";
import { measureLag, type Offsets } from "../store/offsets.ts";
import type { Tenant } from "../topic/name.ts";
import type { Topic, Topics } from "../topic/topics.ts";

/** Interval of samples. */
export const SAMPLE_MS = 10_000;
const SAMPLES_MAX = 60;

/** Bounds of the memory and the time that samples take; what is beyond them has no figures. */
interface ActivityLimits {
  topicsMax: number;
  /** Committed offsets that are looked at. */
  offsetsMax: number;
  /** Pairs of a group and a topic. */
  seriesMax: number;
}

const LIMITS_DEFAULT: ActivityLimits = { topicsMax: 10_000, offsetsMax: 50_000, seriesMax: 1_000 };

/** Lag of a group in a topic at one time. */
interface LagSample {
  /** Epoch ms. */
  atMs: number;
  lag: number;
}

/** The lag of a group in a topic, oldest sample first. */
export interface LagSeries {
  topic: Topic;
  /** Time of the first sample of the current lag, epoch ms; undefined if there is none. */
  laggingSinceMs: number | undefined;
  samples: LagSample[];
}

/** The largest values of all groups and topics, which need not be of the same ones. */
export interface WorstLag {
  messages: number;
  /** Time since the first sample with a lag. */
  seconds: number;
}

interface TopicSample {
  end: number;
  perSecond: number | undefined;
}

interface ActivityOptions {
  topics: Topics;
  offsets: Offsets;
  clock: Clock;
  onError: (error: unknown) => void;
  limits?: Partial<ActivityLimits>;
}

/** Samples topics and groups. */
export class Activity {
  readonly #options: ActivityOptions;
  readonly #limits: ActivityLimits;
  #sampledMs = 0;
  #topics = new Map<Topic, TopicSample>();
  #groups = new Map<string, Map<Topic, LagSeries>>();
  #timer: RepeatingTimer | undefined;
  readonly #listeners = new Set<() => void>();

  constructor(options: ActivityOptions) {
    this.#options = options;
    this.#limits = { ...LIMITS_DEFAULT, ...options.limits };
  }

  start(): void {
    this.sample();
    this.#timer = every(SAMPLE_MS, () => this.sample(), this.#options.onError);
  }

  async stop(): Promise<void> {
    await this.#timer?.stop();
  }

  /** Calls `listener` after each sample until the returned function is called. */
  watch(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** Messages per second of all topics between the last two samples, where that is known. */
  *rates(): Generator<[topic: Topic, perSecond: number]> {
    for (const [topic, { perSecond }] of this.#topics) {
      if (perSecond !== undefined) yield [topic, perSecond];
    }
  }

  /** Messages per second that were stored between the last two samples; undefined if it is not known. */
  rateOf(topic: Topic): number | undefined {
    return this.#topics.get(topic)?.perSecond;
  }

  /** The lag of a group by topic. */
  lagOf(tenant: Tenant, group: string): Iterable<LagSeries> {
    return this.#groups.get(keyOf(tenant, group))?.values() ?? [];
  }

  /** The longest time in which a group had a lag in a topic without a pause, of the last ten minutes; 0 without groups. */
  longestLagMs(topic: Topic): number {
    const nowMs = this.#options.clock.now();
    let longest = 0;
    for (const group of this.#groups.values()) {
      const { laggingSinceMs = nowMs } = group.get(topic) ?? {};
      longest = Math.max(longest, nowMs - laggingSinceMs);
    }
    return longest;
  }

  /** The largest lags at the last sample. */
  get worstLag(): WorstLag {
    const nowMs = this.#options.clock.now();
    let messages = 0;
    let seconds = 0;
    for (const group of this.#groups.values()) {
      for (const { samples, laggingSinceMs = nowMs } of group.values()) {
        messages = Math.max(messages, samples.at(-1)!.lag);
        seconds = Math.max(seconds, (nowMs - laggingSinceMs) / 1_000);
      }
    }
    return { messages, seconds };
  }

  /** Takes a sample. */
  sample(): void {
    const nowMs = this.#options.clock.monotonicMs();
    this.#sampleTopics((nowMs - this.#sampledMs) / 1_000);
    this.#sampledMs = nowMs;
    this.#sampleGroups();
    for (const listener of this.#listeners) listener();
  }

  #sampleTopics(elapsedS: number): void {
    const before = this.#topics;
    this.#topics = new Map();
    for (const topic of this.#options.topics.all()) {
      if (this.#topics.size === this.#limits.topicsMax) return;
      let end = 0;
      for (const { durableEnd } of topic.stored.partitions) end += durableEnd;
      const last = before.get(topic);
      const isKnown = last !== undefined && elapsedS > 0;
      const perSecond = isKnown ? Math.max(0, end - last.end) / elapsedS : undefined;
      this.#topics.set(topic, { end, perSecond });
    }
  }

  #sampleGroups(): void {
    const before = this.#groups;
    this.#groups = new Map();
    const atMs = this.#options.clock.now();
    for (const [key, lags] of this.#readLags()) {
      const known = before.get(key);
      const series = new Map<Topic, LagSeries>();
      for (const [topic, lag] of lags) {
        series.set(topic, extend(known?.get(topic), topic, { atMs, lag }));
      }
      this.#groups.set(key, series);
    }
  }

  /** The lag by group and topic, of all partitions together. */
  #readLags(): Map<string, Map<Topic, number>> {
    const groups = new Map<string, Map<Topic, number>>();
    let offsets = 0;
    let pairs = 0;
    for (const { tenant, group, topic, partition, offset } of this.#options.offsets.all()) {
      if (++offsets > this.#limits.offsetsMax) break;
      const key = keyOf(tenant, group);
      const lags = groups.get(key) ?? new Map<Topic, number>();
      if (!lags.has(topic) && ++pairs > this.#limits.seriesMax) break;
      groups.set(key, lags);
      lags.set(topic, (lags.get(topic) ?? 0) + measureLag({ topic, partition, offset }).lag);
    }
    return groups;
  }
}

function extend(known: LagSeries | undefined, topic: Topic, sample: LagSample): LagSeries {
  const samples = [...(known?.samples.slice(1 - SAMPLES_MAX) ?? []), sample];
  const laggingSinceMs = sample.lag === 0 ? undefined : (known?.laggingSinceMs ?? sample.atMs);
  return { topic, laggingSinceMs, samples };
}

function keyOf(tenant: Tenant, group: string): string {
  return JSON.stringify([tenant, group]);
}
