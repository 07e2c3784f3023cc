// Passwords that the policy rejects.
import assert from "node:assert/strict";
import { test } from "node:test";
import { PasswordPolicy } from "../../src/sign-in/password-policy.ts";

const policy = new PasswordPolicy(["Acme Cloud", "login.acme.example"]);
const NAMES = ["grace", "grace@acme.example", undefined];

test("any composition is accepted from 8 to 128 characters", () => {
  for (const password of [
    "zkqwvbnm",
    "ZKQWVBNM",
    "82736451",
    " ".repeat(8),
    "päßwörtlich",
    "🐎🔋📎✂️🐎🔋📎✂️",
    "x".repeat(64),
    "x".repeat(128),
  ]) {
    assert.equal(policy.findProblem(password, NAMES), undefined, password);
  }
  assert.match(policy.findProblem("zkqwvbn", NAMES)!.message, /at least 8/);
  assert.match(
    policy.findProblem("🐎🔋📎✂", NAMES)!.message,
    /at least 8/,
    "characters, not code units",
  );
  assert.match(policy.findProblem("x".repeat(129), NAMES)!.message, /at most 128/);
});

test("common passwords, names and the service's own name are rejected", () => {
  for (const password of ["password1", "PASSWORD1", "iloveyou", "qwertyuiop"]) {
    assert.match(policy.findProblem(password, NAMES)!.message, /most common/, password);
  }
  for (const password of [
    "grace@acme.example",
    "GRACE@acme.example",
    "grace1234!",
    "12-Grace-34",
  ]) {
    assert.match(policy.findProblem(password, NAMES)!.message, /your name or address/, password);
  }
  for (const password of ["AcmeCloud!", "acme cloud 2026", "login.acme.example"]) {
    assert.match(policy.findProblem(password, NAMES)!.message, /name of this service/, password);
  }
});
