import type { Knowledge } from '../../classify/known/knowledge.ts'
import type { Software } from '../../classify/known/software.ts'
import { SoftwareNames } from '../../classify/known/software-names.ts'
import { parseWeights } from '../../classify/known/weights.ts'
import { loadConfig, type StartupConfig } from '../../config/config.ts'
import { silentLog } from '../../shared/log.ts'
import { RangesStore, rangesFolder } from '../../identity/address/ranges-store.ts'
import { FeedStore, feedFolder } from '../../manage/publish/feed-store.ts'
import type { Arguments } from '../../terminal/command.ts'
import { configFlags } from '../../terminal/config-options.ts'
import { feedSettings } from './feed-settings.ts'
import type { Io } from '../../terminal/io.ts'
import { knowledgeOf, loadKnowledge } from './knowledge-files.ts'
import { withFetched } from '../live-parts.ts'
import { loadContent, readSources, type SignatureSources } from './signature-content.ts'

/** The signatures and weights of a gateway with the given configuration. Without one, the built-in ones. */
export async function givenKnowledge(given: Arguments, io: Io): Promise<Knowledge> {
  const isConfigured = given.value('config') !== null || Object.keys(io.env).some(isSetting)
  if (!isConfigured) return loadKnowledge(null, null)
  const { config } = loadConfig(configFlags(given), given.value('config'), io.env)
  const { list, weights, fingerprints } = await loadContent(await configuredSources(config))
  return knowledgeOf(list, parseWeights(weights), fingerprints)
}

/**
 * The names of agents and software with this configuration, except those that
 * the API created in the database.
 */
export async function configuredNames(config: StartupConfig): Promise<SoftwareNames> {
  const byId = new Map<string, Software>()
  await readSources(await configuredSources(config), {
    begin: () => undefined,
    software: (software) => void byId.set(software.id, software),
    fingerprint: (of) => byId.has(of),
  })
  return SoftwareNames.of([...byId.values()])
}

async function configuredSources(config: StartupConfig): Promise<SignatureSources> {
  const silent = silentLog()
  const feeds = new FeedStore(feedFolder(config.data.dir), feedSettings(config), silent)
  const ranges =
    config.identity.rangesRefreshMs === null
      ? null
      : new RangesStore(rangesFolder(config.data.dir), silent, Date.now)
  return withFetched(
    { paths: config.signatures, weightsFile: config.weights.file },
    await feeds.load(),
    ranges,
  )
}

/** Only these variables count as a configuration, so that a policy can be tried without one. */
function isSetting(name: string): boolean {
  return /^GATEHOUSE_(?:CONFIG|SIGNATURES|WEIGHTS|FEEDS|IDENTITY_RANGES)/.test(name)
}
