// Names of the objects of segments.

/** The parts of a name. */
export interface ObjectNameParts {
  /** The id of the log that created the object, in hex. */
  log: string;
  /** The topic's id in hex. */
  topic: string;
  partition: number;
  baseOffset: number;
  nextOffset: number;
  /** Eight random hexadecimal digits: a name is never used twice. */
  random: string;
}

const NAME =
  /^log\/([0-9a-f]{32})\/([0-9a-f]{32})\/(\d{1,9})\/(\d{20})-(\d{20})-([0-9a-f]{8})\.segment$/;

/** The beginning of the names of all objects of a log. */
export function objectPrefix(log: string): string {
  return `log/${log}/`;
}

export function formatObjectName(parts: ObjectNameParts): string {
  const { log, topic, partition, random } = parts;
  const [base, next] = [parts.baseOffset, parts.nextOffset].map((offset) =>
    String(offset).padStart(20, "0"),
  );
  return `${objectPrefix(log)}${topic}/${partition}/${base}-${next}-${random}.segment`;
}

/** The parts of a name; `undefined` for any other text. */
export function parseObjectName(name: string): ObjectNameParts | undefined {
  const match = NAME.exec(name);
  if (match === null) return undefined;
  const [log, topic, partition, base, next, random] = match.slice(1) as [
    string,
    string,
    string,
    string,
    string,
    string,
  ];
  return {
    log,
    topic,
    partition: Number(partition),
    baseOffset: Number(base),
    nextOffset: Number(next),
    random,
  };
}
