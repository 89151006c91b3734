import { randomBytes } from 'node:crypto'
import { fileURLToPath } from 'node:url'
import { buildSignatureIndex } from '../classify/index-builder.ts'
import { compileKnowledge, fingerprintsOf, type Knowledge } from '../classify/knowledge.ts'
import { SignatureIndex } from '../classify/signature-index.ts'
import type { Software } from '../classify/software.ts'
import { parseWeights, type Weights } from '../classify/weights.ts'
import { placed, readSource } from '../config-source.ts'
import { loadSoftware, readText } from './signature-files.ts'

/** What requests are judged by, from files; `null` for those that come with Gatehouse. Throws a Fault. */
export async function loadKnowledge(
  signatures: readonly string[] | null,
  weightsFile: string | null,
): Promise<Knowledge> {
  const [list, weights] = await Promise.all([loadSoftware(signatures), loadWeights(weightsFile)])
  return knowledgeOf(list, weights)
}

export function knowledgeOf(list: readonly Software[], weights: Weights): Knowledge {
  const bytes = randomBytes(8)
  const seed = [bytes.readInt32LE(0), bytes.readInt32LE(4)] as const
  const index = SignatureIndex.open(buildSignatureIndex(fingerprintsOf(list), seed).buffer)
  return compileKnowledge(list, weights, index)
}

/** As it travels to proxies. Throws a Fault. */
export async function builtinWeights(): Promise<unknown> {
  return readSource(await readText(BUILTIN_WEIGHTS), BUILTIN_WEIGHTS).value
}

export async function loadWeights(file: string | null): Promise<Weights> {
  const path = file ?? BUILTIN_WEIGHTS
  const source = readSource(await readText(path), path)
  return placed(source, () => parseWeights(source.value))
}

export const BUILTIN_WEIGHTS = fileURLToPath(new URL('../../signatures/weights.json', import.meta.url))
