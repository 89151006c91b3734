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

/** The sources of a gateway's signatures besides the built-in ones. They can be sent to another process. */
export interface SignatureSources {
  /** Payloads that a trusted key has signed. A later feed overrides an earlier one. */
  readonly feeds: readonly Uint8Array[]
  /** Signatures that the API has accepted, as lines of JSON. */
  readonly accepted?: string
  /** The operator's own files and folders, which override feeds. */
  readonly paths: readonly string[]
  /** Fetched address ranges for the URLs in the other sources. */
  readonly ranges?: readonly FetchedRanges[]
  /** `null`: the weights that come with Gatehouse. */
  readonly weightsFile: string | null
}

/** No sources besides the built-in ones. */
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

/** Throws a ConfigFault with all problems in the files. */
export async function loadContent(sources: SignatureSources, copies = new ListCopies()): Promise<SetContent> {
  const content = new Content()
  const weights = await loadWeightsDocument(sources.weightsFile)
  await readSources(sources, content, copies)
  const { list, fingerprints } = content.whole()
  return { list: withFetchedRanges(list, sources.ranges ?? []), fingerprints, weights }
}

/** Receives everything in the sources. Sources with precedence come later. */
export interface SourceSink extends LineSink {
  /** Starts the entries of an origin. */
  begin(origin: 'builtin' | 'feed' | 'api' | 'own'): void
}

/** Throws a ConfigFault with all problems in the files. */
export async function readSources(
  { feeds, accepted = '', paths }: Omit<SignatureSources, 'ranges' | 'weightsFile'>,
  sink: SourceSink,
  copies = new ListCopies(),
): Promise<void> {
  const addAll = (list: readonly Software[]) => {
    for (const software of list) sink.software(software, '')
  }
  const lines = acceptedLines(accepted)
  // Software that the API created comes first, because a file may define it by now.
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
  // These add to the software with their id. If no file has that id any more,
  // they are skipped until it returns.
  sink.begin('api')
  for (const line of lines) if (line.kind === 'fingerprint') sink.fingerprint(line.of, line.signature, '')
}

function acceptedLines(accepted: string): readonly SignatureLine[] {
  const lines = accepted.split('\n').filter((line) => line !== '')
  return lines.map((line) => parseSignatureLine(JSON.parse(line)))
}

/** Software by id, the last entry winning, with all fingerprints. */
class Content implements SourceSink {
  readonly #list: Software[] = []
  readonly #numbers = new Map<string, number>()
  readonly #fingerprints = new IndexBuilder()
  /**
   * Decisive fingerprints from long lists. Classifying needs them in the software itself, besides the index.
   */
  readonly #decisive = new Map<number, FingerprintSignature[]>()
  #decisiveCount = 0

  begin(): void {
    // Later entries override earlier ones, whatever their origin.
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

/** Each takes some kilobytes in every worker. */
const SOFTWARE_MAX = 20_000
/**
 * Each takes some hundred bytes in every worker, which parses all fingerprints
 * of one software without a pause.
 */
const DECISIVE_MAX = 10_000
