import { isIPv6 } from 'node:net'
import { DEFAULT_APP } from '../../../apps/app.ts'
import type { EventRecord } from '../../../store/events/events.ts'
import { storedObject } from '../../../store/engine/stored.ts'

/** An event in ArcSight's Common Event Format, version 0. It is always one line. */
export function cefOf(event: EventRecord, version: string): string {
  const { type, severity } = event
  const header = ['Gatehouse', 'Gatehouse', version, type, NAMES[type]].map(headerText)
  const fields = fieldsOf(event).flatMap(([key, value]) => (value === null ? [] : [`${key}=${value}`]))
  return ['CEF:0', ...header, SEVERITIES[severity ?? 'none'], fields.join(' ')].join('|')
}

type Field = readonly [key: string, value: string | null]

function fieldsOf({ id, atMs, agent, category, confidence, app, data: text }: EventRecord): readonly Field[] {
  const data = storedObject(text)
  const request = objectAt(data, 'request') ?? objectAt(data, 'sighting') ?? objectAt(data, 'payment') ?? {}
  const detection = objectAt(data, 'detection') ?? data
  const fingerprints = objectAt(detection, 'fingerprints') ?? {}
  return [
    ['rt', String(atMs)],
    ['externalId', fieldText(id)],
    ...addressFields(textAt(request, 'address')),
    ['requestMethod', textAt(request, 'method')],
    ['dhost', hostOf(textAt(request, 'host'))],
    ['request', textAt(request, 'path')],
    ['destinationServiceName', app === null || app === DEFAULT_APP ? null : fieldText(app)],
    ['requestClientApplication', textAt(request, 'user_agent')],
    ['act', textAt(data, 'action') ?? textAt(request, 'action') ?? textAt(data, 'outcome')],
    ['reason', textAt(data, 'reason')],
    ['msg', textAt(data, 'detail')],
    ['cnt', numberAt(data, 'count')],
    ...labelled('cs1', 'agent', agent === null ? null : fieldText(agent)),
    ...labelled('cs2', 'category', category === null ? null : fieldText(category)),
    ...labelled('cs3', 'ja4', textAt(fingerprints, 'ja4')),
    ...labelled('cs4', 'ja4h', textAt(fingerprints, 'ja4h')),
    ...labelled('cs5', 'signature', textAt(objectAt(data, 'signature') ?? {}, 'fingerprint')),
    ...labelled('cs6', 'purpose', purposeIn(data, detection)),
    ...labelled('flexString1', 'price', priceIn(data)),
    ...labelled('cfp1', 'confidence', confidence === null ? null : String(confidence)),
  ]
}

/** The published purposes of the agent, separated by commas. */
function purposeIn(data: JsonObject, detection: JsonObject): string | null {
  const purpose = objectAt(data, 'agent')?.['purpose'] ?? detection['agent_purpose']
  const words = Array.isArray(purpose) ? purpose.filter((each) => typeof each === 'string') : []
  return words.length === 0 ? null : fieldText(words.join(','))
}

/** The price of a payment, with its currency. */
function priceIn(data: JsonObject): string | null {
  const { price, currency } = objectAt(data, 'payment') ?? {}
  return typeof price === 'string' && typeof currency === 'string' ? fieldText(`${price} ${currency}`) : null
}

/** The key `src` takes only IPv4 addresses. */
function addressFields(address: string | null): readonly Field[] {
  if (address === null || !isIPv6(address)) return [['src', address]]
  return [
    ['c6a2', address],
    ['c6a2Label', 'Source IPv6 Address'],
  ]
}

/** The host without the port. */
function hostOf(authority: string | null): string | null {
  return authority?.replace(/:\d{1,5}$/, '') ?? null
}

function labelled(key: string, label: string, value: string | null): readonly Field[] {
  return value === null ? [] : [[key, value] as const, [`${key}Label`, label] as const]
}

type JsonObject = Readonly<Record<string, unknown>>

function objectAt(object: JsonObject, name: string): JsonObject | null {
  const value = object[name]
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as JsonObject) : null
}

function textAt(object: JsonObject, name: string): string | null {
  const value = object[name]
  return typeof value === 'string' && value !== '' ? fieldText(value) : null
}

function numberAt(object: JsonObject, name: string): string | null {
  const value = object[name]
  return Number.isSafeInteger(value) ? String(value) : null
}

/** Escapes a header field. Headers cannot contain line breaks. */
export function headerText(text: string): string {
  return plain(text.replace(/[\r\n]+/g, ' ')).replace(/[\\|]/g, '\\$&')
}

/** Escapes the value of a field. */
export function fieldText(text: string): string {
  const escaped = text
    .slice(0, LENGTH_MAX)
    .replace(/[\\=]/g, '\\$&')
    .replaceAll('\n', '\\n')
    .replaceAll('\r', '\\r')
  return plain(escaped)
}

/** Replaces control characters and lone surrogates, which terminals or parsers in C might misread. */
function plain(text: string): string {
  return text.replace(CONTROL, '\ufffd').toWellFormed()
}

const NAMES = {
  new_agent: 'New agent',
  new_signature: 'New signature',
  threat_detected: 'Threat detected',
  payment: 'Payment',
  test: 'Test',
} as const
/** From 0 to 10: low starts at 0, medium at 4, high at 7 and very high at 9. */
const SEVERITIES = { none: '1', low: '3', medium: '6', high: '8', critical: '10' } as const
/** Includes line breaks that were not escaped. */
const CONTROL = /(?!\t)[\p{Cc}\u2028\u2029]/gu
/** The limit of most keys in the CEF dictionary. */
const LENGTH_MAX = 1_023
