import type { Finding, HttpFinding, TlsFinding } from '../capture/finding.ts'
import { type Io, paint } from './io.ts'

/**
 * Findings for people: a row with client, server and requested host, and below it the full fingerprints,
 * because a truncated fingerprint is useless. Values too long for their row are also printed below. Rows are
 * printed as they are found, so nothing is stored.
 */
export class FindingTable {
  readonly #io: Io
  /** Printed first; `null` if there is only one file. */
  #file: string | null
  readonly #counts = new Map<string, number>()

  constructor(io: Io, file: string | null) {
    this.#io = io
    this.#file = file
  }

  row(finding: Finding): string {
    const heading = this.#counts.size === 0 ? this.#heading() : ''
    const kind = finding.kind === 'http' ? finding.http : KINDS[finding.transport]
    this.#counts.set(kind, (this.#counts.get(kind) ?? 0) + 1)

    const start = [String(finding.frame), kind]
    const cells = cellsOf(finding)
    let fitting = cells.length
    const row = (): string => rowOf([...start, ...cells.slice(0, fitting).map(([, text]) => text)])
    while (fitting > 1 && columnsOf(row()) > this.#io.columns) fitting--
    const lines = [...cells.slice(fitting), ...printsOf(finding)].map(([label, text]) =>
      this.#line(label, text),
    )
    return `${heading}${row()}\n${lines.join('')}`
  }

  summary(frames: number): string {
    const counts = [...this.#counts].map(([kind, count]) => `${count} ${kind}`)
    const found = counts.length === 0 ? 'no TLS handshake and no HTTP request' : counts.join(', ')
    return `${this.#name()}${paint(this.#io, 'bold', found)} in ${counted(frames)}\n`
  }

  #heading(): string {
    const titles = rowOf(['FRAME', 'KIND', 'CLIENT', 'SERVER', 'NAME'])
    return `${this.#name()}${paint(this.#io, 'bold', titles)}\n`
  }

  #name(): string {
    const name = this.#file === null ? '' : `${this.#file}\n`
    this.#file = null
    return name
  }

  #line(label: string, text: string): string {
    const room = Math.max(this.#io.columns - INDENT.length - LABEL_COLUMNS, FINGERPRINT_COLUMNS)
    return `${INDENT}${paint(this.#io, 'dim', label.padEnd(LABEL_COLUMNS))}${cut(text, room)}\n`
  }
}

export function counted(frames: number): string {
  return frames === 1 ? '1 frame' : `${frames} frames`
}

type Labelled = readonly [label: string, text: string]

function cellsOf(finding: Finding): Labelled[] {
  const { src, src_port, dst, dst_port } = finding
  const name = finding.kind === 'http' ? `${finding.method} ${finding.path}` : (finding.sni ?? '-')
  return [
    ['client', endText(src, src_port)],
    ['server', endText(dst, dst_port)],
    ['name', printable(name)],
  ]
}

function endText(address: string, port: number): string {
  return address.includes(':') ? `[${address}]:${port}` : `${address}:${port}`
}

function printsOf(finding: Finding): Labelled[] {
  return finding.kind === 'http' ? httpPrints(finding) : tlsPrints(finding)
}

function tlsPrints(finding: TlsFinding): Labelled[] {
  const prints: Labelled[] = [['ja4', finding.ja4]]
  for (const later of finding.ja4_later) prints.push(['ja4 later', later])
  if (finding.ja4s !== null) prints.push(['ja4s', finding.ja4s])
  for (const later of finding.ja4s_later) prints.push(['ja4s later', later])
  for (const certificate of finding.ja4x) prints.push(['ja4x', certificate])
  for (const certificate of finding.ja4x_client) prints.push(['ja4x own', certificate])
  return prints
}

function httpPrints(finding: HttpFinding): Labelled[] {
  return finding.ja4h === null ? [] : [['ja4h', finding.ja4h]]
}

function rowOf([frame, kind, client, server = '', name = '']: readonly string[]): string {
  const row = `${frame!.padStart(7)}  ${kind!.padEnd(5)}  ${client!.padEnd(21)}  ${server.padEnd(21)}  ${name}`
  return row.trimEnd()
}

function cut(text: string, room: number): string {
  if (columnsOf(text) <= room) return text
  let kept = ''
  let left = room - 1
  for (const character of text) {
    left -= columnsOf(character)
    if (left < 0) break
    kept += character
  }
  return `${kept}…`
}

/** Upper bound of the width: any non-ASCII character may be wide. */
function columnsOf(text: string): number {
  let columns = 0
  for (const character of text) columns += character <= '~' ? 1 : 2
  return columns
}

/** A capture may contain characters that move the cursor or change the text direction. */
function printable(text: string): string {
  return text.replace(/[\p{C}\p{Zl}\p{Zp}]/gu, '·')
}

const KINDS = { tcp: 'tls', quic: 'quic', dtls: 'dtls' } as const
const INDENT = ' '.repeat(9)
const LABEL_COLUMNS = 11
/** Length of a JA4H, the longest fingerprint. */
const FINGERPRINT_COLUMNS = 51
