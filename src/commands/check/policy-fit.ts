import type { StartupConfig } from '../../config/config.ts'
import type { CompiledCondition } from '../../policy/condition.ts'
import type { PolicyText } from '../../runtime/policy-source.ts'
import { POLICY_LAYERS } from '../../policy/action.ts'
import type { DocumentProblem } from '../../shared/problem.ts'
import { HostSet, hostOf } from '../../wire/host.ts'

/** Conditions of a policy that cannot match with the other settings: the served hosts, the checked proofs. */
export function misfitsOf(
  { policy, document }: Pick<PolicyText, 'policy' | 'document'>,
  config: StartupConfig,
): readonly DocumentProblem[] {
  return POLICY_LAYERS.flatMap((layer) => {
    const list = Object.hasOwn(document ?? {}, layer) ? layer : 'rules'
    return policy[layer].rules.flatMap(({ conditions, decision }, index) =>
      conditions.flatMap((condition) =>
        problemsOf(condition, config).map((what) => {
          const pointer = `/${list}/${index}/when/${condition.name}`
          return { pointer, within: `rule "${decision.rule}"`, what }
        }),
      ),
    )
  })
}

/** Only of conditions directly under `when`, because all of them must match. */
function problemsOf({ name, takes }: CompiledCondition, config: StartupConfig): readonly string[] {
  const values = [takes].flat().filter((each) => typeof each === 'string')
  switch (name) {
    case 'host':
      return unservedHosts(values, config)
    case 'signer':
      return config.identity.signatures === 'off' ? [`never matches: ${SIGNATURES_OFF}`] : []
    case 'verified':
      return values.flatMap((value) => unmet(value, PROOF_NEEDS, config))
    case 'evidence':
      return values.flatMap((value) => unmet(value, EVIDENCE_NEEDS, config))
    default:
      return []
  }
}

/** The gateway refuses requests for other hosts before any rule is tried. */
function unservedHosts(patterns: readonly string[], { proxy }: StartupConfig): readonly string[] {
  if (proxy.hosts.length === 0 || proxy.unknownHost === 'pass') return []
  const served = new HostSet(proxy.hosts)
  const names = patterns.filter((pattern) => !pattern.includes('*'))
  const unserved = names.filter((name) => !served.has(hostOf(name)))
  return unserved.map(
    (name) => `"${name}" is not in proxy.hosts, so its requests are refused before any rule`,
  )
}

type Need = (config: StartupConfig) => string | null

function unmet(value: string, needs: ReadonlyMap<RegExp, Need>, config: StartupConfig): readonly string[] {
  return [...needs].flatMap(([pattern, need]) => {
    const why = pattern.test(value) ? need(config) : null
    return why === null ? [] : [`"${value}" never matches: ${why}`]
  })
}

const SIGNATURES_OFF = 'identity.signatures is off'
const signatures: Need = ({ identity }) => (identity.signatures === 'off' ? SIGNATURES_OFF : null)
const reverseDns: Need = ({ identity }) =>
  identity.reverseDns ? null : 'identity.reverse_dns is not set to true'
const networks: Need = ({ identity }) => (identity.asnFile === null ? 'identity.asn_file is not set' : null)

const PROOF_NEEDS: ReadonlyMap<RegExp, Need> = new Map([
  [/^web-bot-auth$/, signatures],
  [/^reverse-dns$/, reverseDns],
])
const EVIDENCE_NEEDS: ReadonlyMap<RegExp, Need> = new Map([
  [/^sign(?:ature|ed)-/, signatures],
  [/^host-/, reverseDns],
  [/^network-/, networks],
])
