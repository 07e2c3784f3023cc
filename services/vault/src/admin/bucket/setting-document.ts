// Settings of buckets as JSON: the documents of S3 with the member names of AWS's SDKs and command line. A table describes
// each document; its schema and its conversion to and from XML follow from the table.
import { z } from "zod";
import type { PathSegment } from "../../model/s3-error.ts";
import { parseXml, tag, wrap, xmlDocument, type XmlElement } from "../../s3/wire/xml.ts";

const TEXT_CHARACTERS_MAX = 4_096;
const ITEMS_MAX = 1_000;
/** A thousand lifecycle rules with all their members. */
const ELEMENTS_MAX = 50_000;

/** A member of a document. */
interface Member {
  /** Name of its element, or of each of its elements. */
  readonly name: string;
  readonly isRepeated: boolean;
  readonly schema: z.ZodType;
  readonly write: (value: never) => string;
  /** Reads one element of the name. */
  readonly parse: (element: XmlElement) => unknown;
  /** Converts a place below its element. */
  readonly locate: (place: readonly PathSegment[]) => PathSegment[];
}

type Members = Readonly<Record<string, Member>>;

/** A document: its JSON form, and its conversion. */
export interface SettingDocument {
  readonly schema: z.ZodType;
  /** As S3 sends and receives it. */
  readonly toBody: (document: unknown) => string;
  readonly fromBody: (body: Buffer) => unknown;
  /** Converts a place in the body of S3. */
  readonly locate: (place: readonly PathSegment[]) => PathSegment[];
}

const KEY_AND_VALUE = { Key: text("Key"), Value: text("Value") };
const CRITERIA = {
  Prefix: text("Prefix"),
  ObjectSizeGreaterThan: number("ObjectSizeGreaterThan"),
  ObjectSizeLessThan: number("ObjectSizeLessThan"),
};

export const VERSIONING = defineDocument("VersioningConfiguration", { Status: text("Status") });

export const TAGS = defineDocument("Tagging", {
  TagSet: wrapped("TagSet", repeated(group("Tag", KEY_AND_VALUE))),
});

export const CORS = defineDocument("CORSConfiguration", {
  CORSRules: repeated(
    group("CORSRule", {
      ID: text("ID"),
      AllowedHeaders: repeated(text("AllowedHeader")),
      AllowedMethods: repeated(text("AllowedMethod")),
      AllowedOrigins: repeated(text("AllowedOrigin")),
      ExposeHeaders: repeated(text("ExposeHeader")),
      MaxAgeSeconds: number("MaxAgeSeconds"),
    }),
  ),
});

export const LIFECYCLE = defineDocument("LifecycleConfiguration", {
  Rules: repeated(
    group("Rule", {
      ID: text("ID"),
      Prefix: text("Prefix"),
      Filter: group("Filter", {
        ...CRITERIA,
        Tag: group("Tag", KEY_AND_VALUE),
        And: group("And", { ...CRITERIA, Tags: repeated(group("Tag", KEY_AND_VALUE)) }),
      }),
      Status: text("Status"),
      Expiration: group("Expiration", {
        Days: number("Days"),
        Date: text("Date"),
        ExpiredObjectDeleteMarker: flag("ExpiredObjectDeleteMarker"),
      }),
      Transitions: repeated(
        group("Transition", {
          Days: number("Days"),
          Date: text("Date"),
          StorageClass: text("StorageClass"),
        }),
      ),
      NoncurrentVersionTransitions: repeated(
        group("NoncurrentVersionTransition", {
          NoncurrentDays: number("NoncurrentDays"),
          NewerNoncurrentVersions: number("NewerNoncurrentVersions"),
          StorageClass: text("StorageClass"),
        }),
      ),
      NoncurrentVersionExpiration: group("NoncurrentVersionExpiration", {
        NoncurrentDays: number("NoncurrentDays"),
        NewerNoncurrentVersions: number("NewerNoncurrentVersions"),
      }),
      AbortIncompleteMultipartUpload: group("AbortIncompleteMultipartUpload", {
        DaysAfterInitiation: number("DaysAfterInitiation"),
      }),
    }),
  ),
});

const STATUS = { Status: text("Status") };
const MINUTES = { Minutes: number("Minutes") };

export const REPLICATION = defineDocument("ReplicationConfiguration", {
  Role: text("Role"),
  Rules: repeated(
    group("Rule", {
      ID: text("ID"),
      Priority: number("Priority"),
      Prefix: text("Prefix"),
      Filter: group("Filter", {
        Prefix: text("Prefix"),
        Tag: group("Tag", KEY_AND_VALUE),
        And: group("And", {
          Prefix: text("Prefix"),
          Tags: repeated(group("Tag", KEY_AND_VALUE)),
        }),
      }),
      Status: text("Status"),
      SourceSelectionCriteria: group("SourceSelectionCriteria", {
        SseKmsEncryptedObjects: group("SseKmsEncryptedObjects", STATUS),
        ReplicaModifications: group("ReplicaModifications", STATUS),
      }),
      ExistingObjectReplication: group("ExistingObjectReplication", STATUS),
      DeleteMarkerReplication: group("DeleteMarkerReplication", STATUS),
      Destination: group("Destination", {
        Bucket: text("Bucket"),
        Account: text("Account"),
        StorageClass: text("StorageClass"),
        AccessControlTranslation: group("AccessControlTranslation", { Owner: text("Owner") }),
        EncryptionConfiguration: group("EncryptionConfiguration", {
          ReplicaKmsKeyID: text("ReplicaKmsKeyID"),
        }),
        ReplicationTime: group("ReplicationTime", { ...STATUS, Time: group("Time", MINUTES) }),
        Metrics: group("Metrics", { ...STATUS, EventThreshold: group("EventThreshold", MINUTES) }),
      }),
    }),
  ),
});

export const OBJECT_LOCK = defineDocument("ObjectLockConfiguration", {
  ObjectLockEnabled: text("ObjectLockEnabled"),
  Rule: group("Rule", {
    DefaultRetention: group("DefaultRetention", {
      Mode: text("Mode"),
      Days: number("Days"),
      Years: number("Years"),
    }),
  }),
});

export const WEBSITE = defineDocument("WebsiteConfiguration", {
  RedirectAllRequestsTo: group("RedirectAllRequestsTo", {
    HostName: text("HostName"),
    Protocol: text("Protocol"),
  }),
  IndexDocument: group("IndexDocument", { Suffix: text("Suffix") }),
  ErrorDocument: group("ErrorDocument", { Key: text("Key") }),
  RoutingRules: wrapped(
    "RoutingRules",
    repeated(
      group("RoutingRule", {
        Condition: group("Condition", {
          KeyPrefixEquals: text("KeyPrefixEquals"),
          HttpErrorCodeReturnedEquals: text("HttpErrorCodeReturnedEquals"),
        }),
        Redirect: group("Redirect", {
          HostName: text("HostName"),
          Protocol: text("Protocol"),
          HttpRedirectCode: text("HttpRedirectCode"),
          ReplaceKeyPrefixWith: text("ReplaceKeyPrefixWith"),
          ReplaceKeyWith: text("ReplaceKeyWith"),
        }),
      }),
    ),
  ),
});

function defineDocument(root: string, members: Members): SettingDocument {
  const { schema } = group(root, members);
  return {
    schema,
    toBody: (document) => xmlDocument(root, writeMembers(members, document)),
    fromBody: (body) => readMembers(members, parseXml(body, root, { elementsMax: ELEMENTS_MAX })),
    locate: (place) => locateMember(members, place),
  };
}

function text(name: string): Member {
  return {
    name,
    isRepeated: false,
    schema: z.string().max(TEXT_CHARACTERS_MAX),
    write: (value: string) => tag(name, value),
    parse: (element) => element.text,
    locate: () => [],
  };
}

function number(name: string): Member {
  return {
    name,
    isRepeated: false,
    schema: z.int().min(0),
    write: (value: number) => tag(name, value),
    parse: (element) => Number(element.text),
    locate: () => [],
  };
}

function flag(name: string): Member {
  return {
    name,
    isRepeated: false,
    schema: z.boolean(),
    write: (value: boolean) => tag(name, value),
    parse: (element) => element.text === "true",
    locate: () => [],
  };
}

function group(name: string, members: Members): Member {
  const shape = Object.entries(members).map(([key, { schema }]) => [key, schema.optional()]);
  const schema = z.strictObject(Object.fromEntries(shape) as Record<string, z.ZodType>);
  return {
    name,
    isRepeated: false,
    schema,
    write: (value: object) => wrap(name, writeMembers(members, value)),
    parse: (element) => readMembers(members, element),
    locate: (place) => locateMember(members, place),
  };
}

/** A list: an element for each item. */
function repeated(item: Member): Member {
  return {
    name: item.name,
    isRepeated: true,
    schema: z.array(item.schema).max(ITEMS_MAX),
    write: (values: never[]) => values.map((value) => item.write(value)).join(""),
    parse: item.parse,
    locate: ([index, ...rest]) => (index === undefined ? [] : [index, ...item.locate(rest)]),
  };
}

/** A list with an element around it. */
function wrapped(name: string, list: Member): Member {
  return {
    name,
    isRepeated: false,
    schema: list.schema,
    write: (values: never) => wrap(name, list.write(values)),
    parse: (element) => element.list(list.name).map(list.parse),
    locate: ([, ...rest]) => list.locate(rest),
  };
}

function writeMembers(members: Members, value: unknown): string {
  const given = value as Readonly<Record<string, never>>;
  return Object.entries(members)
    .map(([key, { write }]) => (given[key] === undefined ? "" : write(given[key])))
    .join("");
}

function readMembers(members: Members, element: XmlElement): object {
  const read = Object.entries(members).flatMap(([key, { name, isRepeated, parse }]) => {
    const found = element.list(name).map(parse);
    return found.length === 0 ? [] : [[key, isRepeated ? found : found[0]] as const];
  });
  return Object.fromEntries(read);
}

function locateMember(members: Members, [name, ...rest]: readonly PathSegment[]): PathSegment[] {
  const found = Object.entries(members).find(([, member]) => member.name === name);
  return found === undefined ? [] : [found[0], ...found[1].locate(rest)];
}
