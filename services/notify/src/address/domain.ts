// Domain names of addresses: conversion to A-labels, and detection of look-alikes.
import { domainToASCII, domainToUnicode } from "node:url";
import { mixesLookAlikes } from "@platform/kernel/names";

const LABEL = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/;
const DOMAIN_CHARACTERS_MAX = 253;
// Labels that consist only of these letters read as Latin, as in browsers' rules for showing domain names.
const CYRILLIC_LIKE_LATIN = /^[асԁеһіјӏорԛѕԝхуъьҽпгѵѡ0-9-]+$/u;
const GREEK_LIKE_LATIN = /^[αικνορτυχγωη0-9-]+$/u;

/** A domain name that is valid and unambiguous, in A-label form, or the reason why it is not. */
export type DomainResult = { ok: true; domain: string } | { ok: false; reason: string };

/** Converts a domain name to lower-case A-labels (RFC 5890). Rejects invalid and deceptive names. */
export function parseDomain(text: string): DomainResult {
  const domain = domainToASCII(text);
  const isValid = domain !== "" && domain.length <= DOMAIN_CHARACTERS_MAX;
  const labels = domain.split(".");
  if (!isValid || !labels.every((label) => LABEL.test(label))) {
    return { ok: false, reason: "the domain is not a valid host name" };
  }
  if (/^\d+$/.test(labels.at(-1)!)) {
    return { ok: false, reason: "the domain is an IP address" };
  }
  // The conversion maps full-width and other compatibility characters, which readers take for different ones.
  if (/[^\u0020-\u007e]/.test(text) && !/xn--/.test(domain)) {
    return { ok: false, reason: "the domain contains characters that look like ASCII" };
  }
  if (isDeceptive(domain)) {
    return { ok: false, reason: "the domain imitates another one with letters that look alike" };
  }
  return { ok: true, domain };
}

function isDeceptive(domain: string): boolean {
  if (!domain.includes("xn--")) return false;
  const labels = domainToUnicode(domain).split(".");
  const top = labels.at(-1)!;
  return labels.some((label) => {
    if (mixesLookAlikes(label)) return true;
    if (!/[^\u0020-\u007e]/.test(label)) return false;
    const isNative = /\p{Script=Cyrillic}|\p{Script=Greek}/u.test(top);
    return !isNative && (CYRILLIC_LIKE_LATIN.test(label) || GREEK_LIKE_LATIN.test(label));
  });
}
