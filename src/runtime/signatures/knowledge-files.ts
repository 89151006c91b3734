import { WEIGHTS_FILE } from '../../shared/package-files.ts'
import { randomBytes } from 'node:crypto'
import { buildSignatureIndex, type IndexBuilder } from '../../classify/known/index/index-builder.ts'
import { compileKnowledge, fingerprintsOf, type Knowledge } from '../../classify/known/knowledge.ts'
import { SignatureIndex } from '../../classify/known/index/signature-index.ts'
import type { Software } from '../../classify/known/software.ts'
import { parseWeights, type Weights } from '../../classify/known/weights.ts'
import { ConfigFault, placed, readSource } from '../../config/source.ts'
import { Fault } from '../../shared/fault.ts'
import { loadSoftware, readText } from './signature-files.ts'

/** Loads signatures and weights from files; `null` uses those that come with Gatehouse. Throws a Fault. */
export async function loadKnowledge(
  signatures: readonly string[] | null,
  weightsFile: string | null,
): Promise<Knowledge> {
  const [list, weights] = await Promise.all([loadSoftware(signatures), loadWeights(weightsFile)])
  return knowledgeOf(list, weights)
}

/** `fingerprints`: all fingerprints, if the list does not contain them itself. */
export function knowledgeOf(
  list: readonly Software[],
  weights: Weights,
  fingerprints: IndexBuilder | null = null,
): Knowledge {
  const bytes = randomBytes(8)
  const seed = [bytes.readInt32LE(0), bytes.readInt32LE(4)] as const
  const index = fingerprints?.build(seed) ?? buildSignatureIndex(fingerprintsOf(list), seed)
  return compileKnowledge(list, weights, SignatureIndex.open(index.buffer))
}

export async function loadWeights(file: string | null): Promise<Weights> {
  return parseWeights(await loadWeightsDocument(file))
}

/**
 * The weights as they are sent to proxies; `null` for those that come with Gatehouse. Throws a Fault
 * that says what is wrong and where.
 */
export async function loadWeightsDocument(file: string | null): Promise<unknown> {
  // The built-in file is JSON and valid, so no line numbers are needed.
  if (file === null) return JSON.parse(await readText(WEIGHTS_FILE))
  const source = readSource(await textOf(file), file)
  placed(source, () => parseWeights(source.value))
  return source.value
}

async function textOf(path: string): Promise<string> {
  try {
    return await readText(path)
  } catch (error) {
    if (!(error instanceof Fault) || error instanceof ConfigFault) throw error
    throw new ConfigFault([{ where: path, what: error.message }], 'WEIGHTS_INVALID')
  }
}
