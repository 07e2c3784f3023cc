// The stored form of a delayed message: the record of its topic, and headers that name topic, partition and time slot.
import type { NewRecord, RecordHeader, StoredRecord } from "@platform/log/batch";
import { OWN_HEADER_PREFIX } from "../message/message.ts";
import type { Topic } from "../topic/topics.ts";

const TARGET_HEADER = `${OWN_HEADER_PREFIX}delay-topic`;
const PARTITION_HEADER = `${OWN_HEADER_PREFIX}delay-partition`;
const DUE_HEADER = `${OWN_HEADER_PREFIX}delay-due`;

/** Adds the target of a delayed record. */
export function addTarget(
  record: NewRecord,
  topic: Topic,
  partition: number,
  slot: number,
): NewRecord {
  const headers: RecordHeader[] = [
    ...record.headers,
    { key: TARGET_HEADER, value: topic.stored.id },
    { key: PARTITION_HEADER, value: Buffer.from(String(partition)) },
    { key: DUE_HEADER, value: Buffer.from(String(slot)) },
  ];
  return { ...record, headers };
}

/** The headers of a delayed record without its target. */
export function removeTarget({ headers }: StoredRecord): RecordHeader[] {
  return headers.filter(
    ({ key }) => key !== TARGET_HEADER && key !== PARTITION_HEADER && key !== DUE_HEADER,
  );
}

/** Reads the target of a delayed record; the topic by its id in hex. */
export function readTarget(record: StoredRecord): {
  topicId: string;
  partition: number;
  slot: number;
} {
  const find = (name: string) => record.headers.find(({ key }) => key === name)?.value;
  return {
    topicId: find(TARGET_HEADER)?.toString("hex") ?? "",
    partition: Number(find(PARTITION_HEADER)?.toString()),
    slot: Number(find(DUE_HEADER)?.toString()),
  };
}
