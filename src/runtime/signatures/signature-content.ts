import { IndexBuilder } from '../../classify/known/index/index-builder.ts'
import { fingerprintsOf } from '../../classify/known/knowledge.ts'
import type { FingerprintSignature } from '../../classify/known/signature.ts'
import { parseSignatureLine, type SignatureLine } from '../../classify/known/signature-line.ts'
import type { Software } from '../../classify/known/software.ts'
import { Fault } from '../../shared/fault.ts'
import { softwareInFeed } from '../../plane/feed.ts'
import type { SetContent } from '../../plane/signature-set.ts'
import { loadWeightsDocument } from './knowledge-files.ts'
import { withFetchedRanges } from '../published-lists.ts'
import type { FetchedRanges } from '../../identity/address/ranges-store.ts'
import { ListCopies } from '../list-copies.ts'
import { loadBuiltin, SignatureReading } from './signature-files.ts'
import type { LineSink } from './signature-lines.ts'

/** What a gateway's knowledge is made from, beside what comes with Gatehouse. It can be sent to another process. */
export interface SignatureSources {
  /** Payloads that somebody who is trusted has signed; a later one is stronger. */
  readonly feeds: readonly Uint8Array[]
  /** What the API has accepted, as a long list has it. */
  readonly accepted?: string
  /** The operator's own files and folders, which are stronger still. */
  readonly paths: readonly string[]
  /** Lists of addresses, fetched by URLs that the others have. */
  readonly ranges?: readonly FetchedRanges[]
  /** `null`: those that come with Gatehouse. */
  readonly weightsFile: string | null
}

/** Nobody has anything of his own. */
export const BUILTIN_ALONE: SignatureSources = {
  feeds: [],
  accepted: '',
  paths: [],
  ranges: [],
  weightsFile: null,
}

export function isBuiltinAlone({
  feeds,
  accepted = '',
  paths,
  ranges = [],
  weightsFile,
}: SignatureSources): boolean {
  return [feeds, accepted, paths, ranges].every(({ length }) => length === 0) && weightsFile === null
}

/** Throws a ConfigFault with everything that is wrong in the files. */
export async function loadContent(sources: SignatureSources, copies = new ListCopies()): Promise<SetContent> {
  const content = new Content()
  const weights = await loadWeightsDocument(sources.weightsFile)
  await readSources(sources, content, copies)
  const { list, fingerprints } = content.whole()
  return { list: withFetchedRanges(list, sources.ranges ?? []), fingerprints, weights }
}

/** Takes all that sources say, the stronger after the weaker. */
export interface SourceSink extends LineSink {
  /** What comes next is from there. */
  begin(origin: 'builtin' | 'feed' | 'api' | 'own'): void
}

/** Throws a ConfigFault with everything that is wrong in the files. */
export async function readSources(
  { feeds, accepted = '', paths }: Omit<SignatureSources, 'ranges' | 'weightsFile'>,
  sink: SourceSink,
  copies = new ListCopies(),
): Promise<void> {
  const addAll = (list: readonly Software[]) => {
    for (const software of list) sink.software(software, '')
  }
  const lines = acceptedLines(accepted)
  // Files may know by now what was made for want of it.
  sink.begin('api')
  addAll(lines.flatMap((line) => (line.kind === 'software' ? [line.software] : [])))
  sink.begin('builtin')
  addAll(await loadBuiltin(copies))
  sink.begin('feed')
  for (const payload of feeds) addAll(softwareInFeed(payload))
  sink.begin('own')
  const reading = await SignatureReading.of(paths, copies)
  for (const { list } of reading.lists) addAll(list)
  await reading.readLines(sink)
  reading.done()
  // They add to whatever has the id; of what no file knows any more, they wait for it to come again.
  sink.begin('api')
  for (const line of lines) if (line.kind === 'fingerprint') sink.fingerprint(line.of, line.signature, '')
}

function acceptedLines(accepted: string): readonly SignatureLine[] {
  const lines = accepted.split('\n').filter((line) => line !== '')
  return lines.map((line) => parseSignatureLine(JSON.parse(line)))
}

/** Software by id, the last word on each, and fingerprints that add to it. */
class Content implements SourceSink {
  readonly #list: Software[] = []
  readonly #numbers = new Map<string, number>()
  readonly #fingerprints = new IndexBuilder()
  /** Of lists of lines: beside the index, who judges needs them themselves. */
  readonly #decisive = new Map<number, FingerprintSignature[]>()
  #decisiveCount = 0

  begin(): void {
    // What comes later is stronger, wherever it is from.
  }

  software(software: Software): void {
    const number = this.#numbers.get(software.id) ?? this.#list.length
    if (number >= SOFTWARE_MAX)
      throw new Fault('SIGNATURES_TOO_MANY', `there is more software than ${SOFTWARE_MAX}`)
    this.#numbers.set(software.id, number)
    this.#list[number] = software
  }

  fingerprint(of: string, signature: FingerprintSignature): boolean {
    const software = this.#numbers.get(of)
    if (software === undefined) return false
    if (signature.isDecisive) return this.#decide(software, signature)
    const { type, value, observations } = signature
    this.#fingerprints.add({ type, value, software, observations })
    return true
  }

  #decide(software: number, signature: FingerprintSignature): true {
    if (++this.#decisiveCount > DECISIVE_MAX)
      throw new Fault(
        'SIGNATURES_TOO_MANY',
        `there are more decisive fingerprints in lists than ${DECISIVE_MAX}`,
      )
    const others = this.#decisive.get(software)
    if (others === undefined) this.#decisive.set(software, [signature])
    else others.push(signature)
    return true
  }

  whole(): Omit<SetContent, 'weights'> {
    for (const [number, decisive] of this.#decisive) {
      const software = this.#list[number]!
      this.#list[number] = { ...software, signatures: [...software.signatures, ...decisive] }
    }
    for (const signature of fingerprintsOf(this.#list)) this.#fingerprints.add(signature)
    return { list: this.#list, fingerprints: this.#fingerprints }
  }
}

/** Each is some kilobytes in every worker. */
const SOFTWARE_MAX = 20_000
/** Some hundred bytes each in every worker, and parsed there without a pause where one Software has them all. */
const DECISIVE_MAX = 10_000
