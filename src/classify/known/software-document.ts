import type { PublishedRanges } from './published-ranges.ts'
import { isDecisive, type Signature } from './signature.ts'
import type { Purpose, Software, Verification } from './software.ts'

/**
 * Writes a Software as in a file of signatures, in a fixed order. parseSoftwareList reads it back unchanged.
 */
export function softwareDocument(software: Software): Readonly<Record<string, unknown>> {
  return said({
    id: software.id,
    name: software.name,
    kind: software.kind,
    category: software.category,
    purpose: software.purposes.map((is, i) => ({ is, ...software.purposeSources[i]! })),
    vendor: software.vendor,
    homepage: software.homepage,
    description: software.description,
    aliases: software.aliases,
    robots_token: software.robotsToken,
    engine: software.engine,
    gives_way: software.givesWay === 0 ? null : software.givesWay,
    imitates_browsers: software.isImitator ? true : null,
    family: software.isFamily ? true : null,
    verification: verificationDocument(software.verification),
    signatures: software.signatures.map(signatureDocument),
  })
}

/**
 * The part of the JSON text of a document that is there only if the agent has this purpose: `is` is written
 * first, and quotes in texts are escaped.
 */
export function purposeInText(purpose: Purpose): string {
  return `{"is":${JSON.stringify(purpose)},`
}

/** The purposes in the JSON text of a document. */
export function purposesIn(text: string): readonly Purpose[] {
  return purposesAndVendorIn(text).purposes
}

/** The purposes and the vendor in the JSON text of a document. */
export function purposesAndVendorIn(text: string): Pick<Software, 'purposes' | 'vendor'> {
  const { purpose = [], vendor = null } = JSON.parse(text) as {
    readonly purpose?: readonly { readonly is: Purpose }[]
    readonly vendor?: string
  }
  return { purposes: purpose.map(({ is }) => is), vendor }
}

export function signatureDocument(signature: Signature): Readonly<Record<string, unknown>> {
  const { source, date, observations } = signature
  return said({
    ...patternDocument(signature),
    decisive: isDecisive(signature) ? true : null,
    source,
    date,
    observations: observations === 0 ? null : observations,
  })
}

function patternDocument(signature: Signature): Readonly<Record<string, unknown>> {
  switch (signature.type) {
    case 'user-agent':
      return { user_agent: signature.text, match: signature.match === 'product' ? null : signature.match }
    case 'header':
      return { header: signature.name, value: signature.value }
    case 'header-order':
      return { header_order: signature.names, protocol: signature.protocol }
    default:
      return { [signature.type]: signature.value }
  }
}

function verificationDocument(verification: Verification): Readonly<Record<string, unknown>> | null {
  const { rangesUrl, ranges, reverseDns, asns, signatureAgent } = verification
  const document = said({
    ranges_url: rangesUrl,
    ranges: ranges === null ? null : rangesDocument(ranges),
    reverse_dns: reverseDns,
    asns,
    signature_agent: signatureAgent,
  })
  return Object.keys(document).length === 0 ? null : document
}

function rangesDocument(ranges: PublishedRanges): Readonly<Record<string, unknown>> {
  const { source, date, isPartial, prefixes } = ranges
  return said({ source, date, partial: isPartial ? true : null, prefixes })
}

/** Leaves out members without a value, and empty lists. */
function said(members: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  const isSaid = (value: unknown) => value !== null && !(Array.isArray(value) && value.length === 0)
  return Object.fromEntries(Object.entries(members).filter(([, value]) => isSaid(value)))
}
