// Policies: what they allow, what they deny, what is refused when one is put.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import fc from "fast-check";
import { checkPolicyActions, compilePolicy, type UnknownParts } from "../../src/access/policy.ts";
import type { PolicyPrincipal } from "../../src/access/principal.ts";
import { S3_ACTIONS } from "../../src/access/s3-actions.ts";
import { matchesWildcard } from "../../src/access/wildcard.ts";
import { OPERATIONS } from "../../src/s3/operations.ts";

const anyone: PolicyPrincipal = { arn: undefined, names: [], accountNames: [] };
const ada: PolicyPrincipal = {
  arn: "arn:aws:iam::000000000001:user/ada",
  names: ["ada"],
  accountNames: ["000000000001"],
};

function ask(
  statements: object | object[],
  question: {
    principal?: PolicyPrincipal;
    action?: string;
    resource?: string;
    values?: object;
  } = {},
) {
  const policy = compilePolicy({ Version: "2012-10-17", Statement: statements }, "b");
  return policy.ask({
    principal: question.principal ?? anyone,
    action: question.action ?? "s3:GetObject",
    resource: question.resource ?? "b/k",
    values: new Map(Object.entries(question.values ?? {}) as [string, string[]][]),
  });
}

const allow = {
  Effect: "Allow",
  Principal: "*",
  Action: "s3:GetObject",
  Resource: "arn:aws:s3:::b/*",
};

describe("a question with unknown parts", () => {
  const parts = (statements: object | object[], unknown: UnknownParts, values: object = {}) =>
    compilePolicy({ Version: "2012-10-17", Statement: statements }, "b").ask({
      principal: ada,
      action: "s3:GetObject",
      resource: unknown.resource === "bucket" ? "" : "b",
      values: new Map(Object.entries(values) as [string, string[]][]),
      unknown,
    });
  const anyKey: UnknownParts = { resource: "key", values: [] };
  const on = (resource: string, more: object = {}) => ({
    ...allow,
    Resource: `arn:aws:s3:::${resource}`,
    ...more,
  });

  test("is allowed if some key may be allowed", () => {
    for (const resource of ["b/*", "b*", "*", "b/in/*", "?/x", "*/x", "b/${aws:username}/*"]) {
      assert.equal(parts(on(resource), anyKey), "allow", resource);
    }
    assert.equal(parts(on("b"), anyKey), "none");
    assert.equal(parts({ ...on("b/*"), Action: "s3:PutObject" }, anyKey), "none");
  });

  test("is denied only if every key is denied", () => {
    const denied = (resource: string, more: object = {}) =>
      parts([on("b/*"), on(resource, { Effect: "Deny", ...more })], anyKey);
    assert.equal(denied("b/*"), "deny");
    assert.equal(denied("b*"), "deny");
    assert.equal(denied("b/secret/*"), "allow");
    const secure = { Bool: { "aws:SecureTransport": "false" } };
    assert.equal(denied("b/*", { Condition: secure }), "allow");
  });

  test("counts conditions on unknown values in favour of the caller, and all others as they are", () => {
    const unknown = { values: ["s3:requestobjecttag"] };
    const tagged = { StringEquals: { "s3:RequestObjectTag/team": "sea" } };
    const from = { IpAddress: { "aws:SourceIp": "10.0.0.0/8" } };
    const values = { "aws:sourceip": ["192.0.2.1"] };
    assert.equal(parts(on("b", { Condition: tagged }), unknown, values), "allow");
    assert.equal(parts(on("b", { Condition: { ...tagged, ...from } }), unknown, values), "none");
    const deny = { Effect: "Deny", Condition: tagged };
    assert.equal(parts([on("b"), on("b", deny)], unknown, values), "allow");
  });

  test("is about buckets if the bucket is unknown", () => {
    const anyBucket: UnknownParts = { resource: "bucket", values: [] };
    assert.equal(parts(on("b*"), anyBucket), "allow");
    assert.equal(parts(on("b/*"), anyBucket), "none");
    assert.equal(parts([on("*"), on("*", { Effect: "Deny" })], anyBucket), "deny");
  });

  test("is answered as the best of all keys would be", () => {
    const text = fc.string({ unit: fc.constantFrom("a", "b", "/", "*", "?"), maxLength: 6 });
    const key = fc.string({ unit: fc.constantFrom("a", "b", "/"), minLength: 1, maxLength: 4 });
    fc.assert(
      fc.property(text, text, key, (allowed, denied, name) => {
        const statements = [on(`b*/${allowed}`), on(`b*/${denied}`, { Effect: "Deny" })];
        const known = ask(statements, { principal: ada, resource: `b/${name}` });
        if (known === "allow") assert.equal(parts(statements, anyKey), "allow");
        if (parts(statements, anyKey) === "deny") assert.equal(known, "deny");
      }),
    );
  });
});

describe("a bucket policy", () => {
  test("allows only what it names", () => {
    assert.equal(ask(allow), "allow");
    assert.equal(ask(allow, { action: "s3:PutObject" }), "none");
    assert.equal(ask(allow, { resource: "b" }), "none");
  });

  test("accepts the specification's names as aliases of those of AWS", () => {
    const own = { ...allow, Action: "objstore:Get*", Resource: "arn:store:objstore:::b/*" };
    assert.equal(ask(own), "allow");
  });

  test("denies even what another statement allows, in any order", () => {
    const deny = { ...allow, Effect: "Deny", Resource: "arn:aws:s3:::b/secret/*" };
    for (const statements of [
      [allow, deny],
      [deny, allow],
    ]) {
      assert.equal(ask(statements, { resource: "b/secret/x" }), "deny");
      assert.equal(ask(statements, { resource: "b/open" }), "allow");
    }
  });

  test("applies to the principals that it names", () => {
    const forAda = { ...allow, Principal: { AWS: "arn:aws:iam::000000000001:user/ada" } };
    assert.equal(ask(forAda, { principal: ada }), "allow");
    assert.equal(ask(forAda), "none");
    const { Principal: _principal, ...rest } = allow;
    const butAda = { ...rest, Effect: "Deny", NotPrincipal: { AWS: ["ada"] } };
    assert.equal(ask([allow, butAda], { principal: ada }), "allow");
    assert.equal(ask([allow, butAda]), "deny");
  });

  test("may name principals that do not exist here: another account, the identity of a content network", () => {
    const others = [
      "arn:aws:iam::123456789012:root",
      "arn:aws:iam::cloudfront:user/CloudFront Origin Access Identity E2EXAMPLE",
    ];
    for (const AWS of others) {
      assert.equal(ask({ ...allow, Principal: { AWS } }), "none");
      assert.equal(ask([allow, { ...allow, Effect: "Deny", Principal: { AWS } }]), "allow");
    }
  });

  const CONDITIONS: [condition: object, values: object, holds: boolean][] = [
    [{ IpAddress: { "aws:SourceIp": "10.0.0.0/8" } }, { "aws:sourceip": ["10.1.2.3"] }, true],
    [{ IpAddress: { "aws:SourceIp": "10.0.0.0/8" } }, { "aws:sourceip": ["11.1.2.3"] }, false],
    [
      { NotIpAddress: { "aws:SourceIp": ["10.0.0.0/8", "::1"] } },
      { "aws:sourceip": ["::1"] },
      false,
    ],
    [{ StringEquals: { "s3:prefix": ["a/", "b/"] } }, { "s3:prefix": ["b/"] }, true],
    [{ StringEquals: { "s3:prefix": "a/" } }, {}, false],
    [{ StringNotEquals: { "s3:prefix": "a/" } }, {}, true],
    [{ StringEqualsIfExists: { "s3:prefix": "a/" } }, {}, true],
    [
      { StringLike: { "aws:Referer": "https://x.example/*" } },
      { "aws:referer": ["https://x.example/p"] },
      true,
    ],
    [{ Bool: { "aws:SecureTransport": "false" } }, { "aws:securetransport": ["false"] }, true],
    [{ Null: { "s3:x-amz-acl": "true" } }, {}, true],
    [{ Null: { "s3:x-amz-acl": true } }, { "s3:x-amz-acl": ["private"] }, false],
    [{ NumericLessThanEquals: { "s3:max-keys": "10" } }, { "s3:max-keys": ["10"] }, true],
    [{ NumericLessThan: { "s3:max-keys": 10 } }, { "s3:max-keys": ["10"] }, false],
    [
      { DateGreaterThan: { "aws:CurrentTime": "2026-01-01T00:00:00Z" } },
      { "aws:currenttime": ["2026-06-01T00:00:00Z"] },
      true,
    ],
    [
      { StringEquals: { "s3:ExistingObjectTag/Team": "a" } },
      { "s3:existingobjecttag/Team": ["a"] },
      true,
    ],
    [
      { "ForAllValues:StringEquals": { "s3:RequestObjectTagKeys": ["a", "b"] } },
      { "s3:requestobjecttagkeys": ["a", "c"] },
      false,
    ],
    [
      { "ForAnyValue:StringEquals": { "s3:RequestObjectTagKeys": ["a"] } },
      { "s3:requestobjecttagkeys": ["a", "c"] },
      true,
    ],
  ];
  for (const [condition, values, holds] of CONDITIONS) {
    test(`${JSON.stringify(condition)} ${holds ? "holds" : "does not hold"} for ${JSON.stringify(values)}`, () => {
      const result = ask({ ...allow, Condition: condition }, { values });
      assert.equal(result, holds ? "allow" : "none");
    });
  }

  test("puts the caller's name where a variable stands, and never as a pattern", () => {
    const own = { ...allow, Resource: "arn:aws:s3:::b/${aws:username}/*" };
    const as = (name: string, resource: string) =>
      ask(own, { resource, values: { "aws:username": [name] } });
    assert.equal(as("ada", "b/ada/x"), "allow");
    assert.equal(as("ada", "b/bob/x"), "none");
    assert.equal(as("*", "b/bob/x"), "none");
  });
});

describe("a policy's variables", () => {
  test("have defaults for callers without a value", () => {
    const own = { ...allow, Resource: "arn:aws:s3:::b/${aws:username, 'guest'}/*" };
    const values = { "aws:username": ["ada"] };
    assert.equal(ask(own, { resource: "b/ada/x", values }), "allow");
    assert.equal(ask(own, { resource: "b/guest/x", values }), "none");
    assert.equal(ask(own, { resource: "b/guest/x" }), "allow");
  });

  test("may be literal characters that would be patterns", () => {
    const own = { ...allow, Resource: "arn:aws:s3:::b/${*}${?}*${$}" };
    assert.equal(ask(own, { resource: "b/*?x$" }), "allow");
    assert.equal(ask(own, { resource: "b/ab$" }), "none");
    const value = { StringEquals: { "s3:prefix": "${*}" } };
    const asked = (prefix: string) =>
      ask({ ...allow, Condition: value }, { values: { "s3:prefix": [prefix] } });
    assert.equal(asked("*"), "allow");
    assert.equal(asked("a"), "none");
  });

  test("keep the stars and question marks of a value as literals", () => {
    const values = { "aws:referer": ["a?*"], "s3:prefix": ["a?*"] };
    const both = ["StringEquals", "StringLike"];
    for (const operator of both) {
      const Condition = { [operator]: { "s3:prefix": "${aws:Referer}" } };
      assert.equal(ask({ ...allow, Condition }, { values }), "allow", operator);
      const others = { ...values, "s3:prefix": ["abc"] };
      assert.equal(ask({ ...allow, Condition }, { values: others }), "none", operator);
    }
  });

  test("may be any condition key, including tags of principals, which do not exist here", () => {
    const byPrefix = { ...allow, Resource: "arn:aws:s3:::b/${s3:prefix}" };
    assert.equal(ask(byPrefix, { resource: "b/a", values: { "s3:prefix": ["a"] } }), "allow");
    const byTag = { ...allow, Resource: "arn:aws:s3:::b/${aws:PrincipalTag/team}/*" };
    assert.equal(ask(byTag, { resource: "b//x" }), "none");
  });

  test("are texts like any other where the policy is of the older version", () => {
    const statement = { ...allow, Resource: "arn:aws:s3:::b/${aws:username}" };
    for (const Version of ["2008-10-17", undefined]) {
      const policy = compilePolicy({ Version, Statement: statement }, "b");
      const values = new Map([["aws:username", ["ada"]]]);
      const asked = (resource: string) =>
        policy.ask({ principal: anyone, action: "s3:GetObject", resource, values });
      assert.equal(asked("b/ada"), "none");
      assert.equal(asked("b/${aws:username}"), "allow");
    }
  });
});

describe("a policy with unknown parts is refused", () => {
  const BAD: [what: string, statement: object][] = [
    ["an unknown operator", { ...allow, Condition: { StringSounds: { "s3:prefix": "a" } } }],
    ["an unknown key", { ...allow, Condition: { StringEquals: { "aws:MoonPhase": "full" } } }],
    [
      "an invalid address",
      { ...allow, Condition: { IpAddress: { "aws:SourceIp": "10.0.0.0/33" } } },
    ],
    ["an unknown variable", { ...allow, Resource: "arn:aws:s3:::b/${aws:moon}" }],
    ["another bucket", { ...allow, Resource: "arn:aws:s3:::c/*" }],
    ["another service", { ...allow, Action: "iam:*" }],
    ["an unknown member", { ...allow, Extra: 1 }],
    ["no principal", { ...allow, Principal: undefined }],
    ["an unknown effect", { ...allow, Effect: "Maybe" }],
    ["an action and its inverse", { ...allow, NotAction: "s3:PutObject" }],
    ["an invalid principal", { ...allow, Principal: { Service: "x" } }],
    [
      "a pattern for a principal, which would match none",
      { ...allow, Principal: { AWS: "arn:aws:iam::000000000001:user/*" } },
    ],
    ["a Sid that is not a string", { ...allow, Sid: 1 }],
  ];
  for (const [what, statement] of BAD) {
    test(`with ${what}`, () => {
      assert.throws(() => compilePolicy({ Version: "2012-10-17", Statement: [statement] }, "b"), {
        code: "MalformedPolicy",
      });
    });
  }

  test("for any input", () => {
    fc.assert(
      fc.property(fc.jsonValue(), (document) => {
        try {
          compilePolicy(document, "b");
        } catch (error) {
          assert.equal((error as { code?: string }).code, "MalformedPolicy");
        }
      }),
    );
  });
});

test("a user's policy may name every action of S3, implemented here or not, and no other action", () => {
  const check = (Action: string) => () =>
    checkPolicyActions({ Statement: { Effect: "Allow", Action, Resource: "*" } }, undefined);
  for (const action of ["s3:*", "s3:Describe*", "s3:ListJobs", "s3:GetAccountPublicAccessBlock"])
    assert.doesNotThrow(check(action), action);
  for (const action of ["s3:GetObjects", "s3:Eat*"])
    assert.throws(check(action), { code: "MalformedPolicy" }, action);
});

test("a policy is public where it lets everyone in without narrowing who", () => {
  const isPublic = (statement: object) => compilePolicy({ Statement: statement }, "b").isPublic;
  assert.ok(isPublic(allow));
  assert.ok(!isPublic({ ...allow, Principal: { AWS: "ada" } }));
  assert.ok(!isPublic({ ...allow, Effect: "Deny" }));
  const NARROW = [
    { IpAddress: { "aws:SourceIp": ["10.0.0.0/8", "2001:db8::/32", "192.0.2.1"] } },
    { IpAddressIfExists: { "aws:SourceIp": "10.0.0.0/8" } },
    { StringEquals: { "aws:username": ["ada", "bob"] } },
    { ArnLike: { "aws:SourceArn": "arn:aws:sns:us-east-1:000000000001:topic" } },
  ];
  for (const Condition of NARROW)
    assert.ok(!isPublic({ ...allow, Condition }), JSON.stringify(Condition));
  const BROAD = [
    { IpAddress: { "aws:SourceIp": "0.0.0.0/0" } },
    { IpAddress: { "aws:SourceIp": ["10.0.0.0/8", "128.0.0.0/1"] } },
    { IpAddress: { "aws:SourceIp": "2000::/3" } },
    { NotIpAddress: { "aws:SourceIp": "10.0.0.0/8" } },
    { StringLike: { "aws:username": "*" } },
    { StringNotEquals: { "aws:username": "ada" } },
    { StringEqualsIfExists: { "aws:username": "ada" } },
    { "ForAllValues:StringEquals": { "aws:username": "ada" } },
    { StringLike: { "aws:Referer": "https://x.example/*" } },
    { StringEquals: { "aws:UserAgent": "x" } },
  ];
  for (const Condition of BROAD)
    assert.ok(isPublic({ ...allow, Condition }), JSON.stringify(Condition));
});

test("wildcards match like a regular expression, in linear time", () => {
  fc.assert(
    fc.property(
      fc.string({ unit: fc.constantFrom("a", "b", "*", "?") }),
      fc.string({ unit: fc.constantFrom("a", "b") }),
      (pattern, text) => {
        const source = pattern.replaceAll("*", ".*").replaceAll("?", ".");
        assert.equal(matchesWildcard(pattern, text), new RegExp(`^${source}$`).test(text));
      },
    ),
  );
  assert.ok(!matchesWildcard("*a".repeat(500), "a".repeat(10_000) + "b"));
  // Character by character, this would take minutes.
  assert.ok(!matchesWildcard(`*${"a".repeat(20_000)}b*`, "a".repeat(2_000_000)));
});

test("every operation needs a permission that policies can name", () => {
  for (const { name, action, versionAction, also, errorForm } of OPERATIONS) {
    // The token decides there.
    if (errorForm === "sts") continue;
    const actions = [action, versionAction ?? action, also?.action ?? action];
    for (const each of actions) assert.ok(S3_ACTIONS.has(each.toLowerCase()), `${name}: ${each}`);
  }
});
