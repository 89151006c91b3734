import type { FilterField } from '../../parts/filters.tsx'
import { CONFLICTS } from './conflicts.ts'
import { CATEGORIES, PURPOSES, VERDICTS } from '../live/names.ts'

const CATEGORY_NAMES = CATEGORIES.map(({ category }) => category).filter((category) => category !== 'unnamed')

/** The filters of the page Traffic, named as in the API. */
export const FIELDS = [
  { name: 'verdict', label: 'Verdict', choices: VERDICTS.map(({ verdict }) => verdict) },
  {
    name: 'action',
    label: 'Action',
    choices: ['pass', 'tag', 'block', 'rate_limit', 'tarpit', 'redirect', 'route', 'charge'],
  },
  { name: 'agent_id', label: 'Agent' },
  { name: 'category', label: 'Category', choices: CATEGORY_NAMES },
  { name: 'purpose', label: 'Purpose', choices: PURPOSES.map(({ purpose }) => purpose) },
  { name: 'host', label: 'Host' },
  { name: 'path', label: 'Path begins with' },
  { name: 'address', label: 'Address or network' },
  { name: 'ja4', label: 'JA4' },
  { name: 'since', label: 'Since', isTime: true },
  { name: 'until', label: 'Until', isTime: true },
  { name: 'rule', label: 'Rule', isRare: true },
  { name: 'asn', label: 'Network (ASN)', isRare: true },
  { name: 'country', label: 'Country', isRare: true },
  { name: 'verified', label: 'Verified', isRare: true },
  { name: 'conflict', label: 'Contradicted by', choices: CONFLICTS, isRare: true },
  { name: 'ja4h', label: 'JA4H', isRare: true },
  { name: 'http_version', label: 'HTTP version', isRare: true },
  { name: 'proxy', label: 'Proxy', isRare: true },
  { name: 'campaign_id', label: 'Campaign', isRare: true },
  { name: 'mcp_method', label: 'MCP method', isRare: true },
  { name: 'mcp_tool', label: 'MCP tool', isRare: true },
] as const satisfies readonly FilterField[]

type FieldName = (typeof FIELDS)[number]['name']
/** The app is chosen above the page. */
export type TrafficValues = Readonly<Record<FieldName | 'app', string>>
export const TRAFFIC_NAMES: readonly (FieldName | 'app')[] = [...FIELDS.map(({ name }) => name), 'app']
