import { createReadStream } from 'node:fs'
import { ConfigFault, readSource, type Source } from '../../config/source.ts'
import { Fault } from '../../shared/fault.ts'
import { decodedText } from '../../runtime/policy-source.ts'
import { unreadable } from '../../terminal/unreadable.ts'
import { USAGE } from '../../terminal/arguments.ts'
import type { Arguments } from '../../terminal/command.ts'
import type { Io } from '../../terminal/io.ts'
import { type HeadText, type RequestLine, readHeadText } from '../../wire/head-text.ts'

/**
 * Reads the request to explain: JSON or YAML, or a request head as text, with its JA4 and address from
 * options. `-` is standard input. Throws a Fault with all problems and their lines.
 */
export async function requestSource(file: string, given: Arguments, io: Io): Promise<Source> {
  const name = file === '-' ? 'stdin' : file
  const text = decodedText(await bytesOf(file === '-' ? io.stdin : createReadStream(file), name), name)
  const [ja4, address] = [given.value('ja4'), given.value('address')]
  const head = readHeadText(text)
  // Headers alone look like YAML.
  if (head.from !== 'headers') return headSource(head, name, { ja4, address })
  if (ja4 !== null || address !== null)
    throw new Fault(USAGE, '--ja4 and --address go with a request head; in JSON and YAML they are fields')
  // JSON is valid YAML.
  return readSource(text, name)
}

/** Reads to the end, which a pipe or a device need not have. */
async function bytesOf(stream: AsyncIterable<Uint8Array>, name: string): Promise<Buffer> {
  const chunks: Uint8Array[] = []
  let length = 0
  try {
    for await (const chunk of stream) {
      chunks.push(chunk)
      length += chunk.length
      if (length > REQUEST_BYTES_MAX)
        throw new ConfigFault([{ where: name, what: `is longer than ${REQUEST_BYTES_MAX} bytes` }])
    }
  } catch (error) {
    if (error instanceof Fault) throw error
    throw new Fault('UNREADABLE', `${name}: ${unreadable(error).message}`, { cause: error })
  }
  return Buffer.concat(chunks)
}

function headSource(
  { line, headers, oddLines }: HeadText,
  name: string,
  more: { readonly ja4: string | null; readonly address: string | null },
): Source {
  const at = (number: number) => `${name}:${number}:1`
  if (oddLines.length > 0)
    throw new ConfigFault(
      oddLines.map((number) => ({ where: at(number), what: 'is not a header; expected Name: value' })),
      'REQUEST_INVALID',
    )
  const sent = headers.filter(({ name }) => !name.startsWith(':'))
  const hostHeader = headers.find(({ name }) => /^(?:host|:authority)$/i.test(name))
  const options = Object.entries(more).filter(([, value]) => value !== null)
  const value = {
    ...(line !== null && requestLine(line, hostHeader?.value)),
    headers: sent.map(({ name, value }) => [name, value]),
    ...Object.fromEntries(options),
  }
  return {
    value,
    place(pointer) {
      const [, member = '', index = ''] = pointer.split('/')
      if (options.some(([option]) => option === member)) return `--${member}`
      const header = member === 'headers' ? sent[Number(index)] : member === 'host' ? hostHeader : undefined
      return at(header?.line ?? line?.number ?? 1)
    },
  }
}

/** The host of a target in absolute form overrides the header (RFC 9112 §3.2.2). */
function requestLine({ method, target, version }: RequestLine, hostHeader: string | undefined) {
  const [, authority, rest = ''] = ABSOLUTE.exec(target) ?? []
  const host = authority ?? hostHeader
  const path = authority === undefined ? target : rest.startsWith('/') ? rest : `/${rest}`
  return { method, path, http: version, ...(host !== undefined && { host }) }
}

const ABSOLUTE = /^https?:\/\/([^/?#]*)(.*)$/i
/** No proxy accepts a head of this size. */
const REQUEST_BYTES_MAX = 1_048_576
