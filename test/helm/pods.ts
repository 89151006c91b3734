import type { Manifest } from './chart.ts'

export function matches(
  selector: Readonly<Record<string, string>>,
  labels: Readonly<Record<string, string>>,
): boolean {
  return Object.entries(selector).every(([name, value]) => labels[name] === value)
}

export function podsOf(manifests: readonly Manifest[]): readonly Pod[] {
  return manifests.flatMap(({ kind, metadata, ...rest }) => {
    const { template, volumeClaimTemplates = [] } = (rest['spec'] ?? {}) as Workload
    const made = kind === 'Pod' ? { metadata, spec: rest['spec'] as Partial<PodSpec> } : template
    if (made === undefined) return []
    const claims = volumeClaimTemplates.map(({ metadata: { name } }) => ({ name }))
    const spec = made.spec as PodSpec
    return [
      {
        kind,
        name: metadata.name,
        labels: made.metadata.labels ?? {},
        annotations: made.metadata.annotations ?? {},
        hook: metadata.annotations?.['helm.sh/hook'] ?? null,
        spec: { ...spec, volumes: [...(spec.volumes ?? []), ...claims] },
      },
    ]
  })
}

interface Workload {
  readonly template?: { readonly metadata: Manifest['metadata']; readonly spec: Partial<PodSpec> }
  readonly volumeClaimTemplates?: readonly { readonly metadata: { readonly name: string } }[]
}

/** A Pod that the chart makes, by itself or through a Deployment, a StatefulSet or a Job. */
export interface Pod {
  readonly kind: string
  readonly name: string
  readonly labels: Readonly<Record<string, string>>
  readonly annotations: Readonly<Record<string, string>>
  /** Of the object that makes it: its Helm hooks. */
  readonly hook: string | null
  readonly spec: PodSpec
}
export interface PodSpec {
  readonly terminationGracePeriodSeconds?: number
  readonly nodeSelector?: unknown
  readonly tolerations?: unknown
  readonly affinity?: unknown
  readonly serviceAccountName?: string
  readonly automountServiceAccountToken?: boolean
  readonly securityContext: {
    readonly runAsNonRoot: boolean
    readonly runAsUser: number
    readonly seccompProfile: { readonly type: string }
  }
  readonly volumes: readonly {
    readonly name: string
    readonly secret?: { readonly secretName: string }
    readonly configMap?: { readonly name: string }
  }[]
  readonly containers: readonly {
    readonly name: string
    readonly image: string
    readonly args?: readonly string[]
    readonly env?: readonly { readonly name: string; readonly value?: string }[]
    readonly ports: readonly { readonly name: string }[]
    readonly volumeMounts: readonly { readonly name: string; readonly mountPath: string }[]
    readonly resources: {
      readonly requests: Readonly<Record<string, string>>
      readonly limits: Readonly<Record<string, string>>
    }
    readonly securityContext: {
      readonly readOnlyRootFilesystem: boolean
      readonly allowPrivilegeEscalation: boolean
      readonly capabilities: { readonly drop: readonly string[] }
    }
  }[]
}
