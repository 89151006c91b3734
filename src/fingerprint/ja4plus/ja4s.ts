import type { Brand } from '../../shared/brand.ts'
import type { Transport } from '../../wire/client-hello.ts'
import type { ServerHello } from '../../wire/server-hello.ts'
import { alpnMark, TRANSPORT_MARKS, twoDigits, versionMark } from '../ja4.ts'
import { countWithout, GREASE } from '../left-out.ts'
import { FingerprintText } from '../text.ts'

export type Ja4s = Brand<string, 'Ja4s'>

/**
 * The JA4S of a server's hello. Extensions are not sorted; only GREASE is left out, which no server was seen
 * to send (the references differ, their maintainer said "ignore everywhere"). Odd ALPN names follow JA4's
 * rule.
 */
export function ja4s(hello: ServerHello, transport: Transport, text = new FingerprintText()): Ja4s {
  return `${prefix(hello, transport)}_${text.clear().list(hello.extensions).hash12()}` as Ja4s
}

/** JA4S with the extensions listed, not hashed. */
export function ja4sRaw(hello: ServerHello, transport: Transport, text = new FingerprintText()): string {
  return `${prefix(hello, transport)}_${text.clear().list(hello.extensions).text()}`
}

function prefix(hello: ServerHello, transport: Transport): string {
  const version = versionMark(hello.selectedVersion ?? hello.legacyVersion)
  const extensions = twoDigits(countWithout(hello.extensions, GREASE))
  const cipher = hello.cipher.toString(16).padStart(4, '0')
  return `${TRANSPORT_MARKS[transport]}${version}${extensions}${alpnMark(hello.alpn ?? undefined)}_${cipher}`
}
