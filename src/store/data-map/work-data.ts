import type { Tables } from '../engine/tables.ts'
import type { AppTables } from '../engine/tables/apps.ts'
import type { CatalogueTables } from '../engine/tables/catalogue.ts'
import type { IdempotencyTables } from '../engine/tables/idempotency.ts'
import type { PaymentTables } from '../engine/tables/payments.ts'
import type { PolicyTables } from '../engine/tables/policies.ts'
import type { SettingTables } from '../engine/tables/settings.ts'
import type { SubmissionTables } from '../engine/tables/submissions.ts'
import type { TaskTables } from '../engine/tables/tasks.ts'
import { ACCOUNT_ID, ID_STAYS, impersonal, personal, type TableData } from './table-data.ts'

type WorkTables = AppTables &
  CatalogueTables &
  IdempotencyTables &
  PaymentTables &
  PolicyTables &
  SettingTables
type OtherTables = Pick<Tables, 'detections' | 'traffic' | 'rate_limits' | 'replays'>

export const WORK_DATA: Readonly<
  Record<keyof (WorkTables & SubmissionTables & TaskTables & OtherTables), TableData>
> = {
  tasks: personal(
    { principal: ACCOUNT_ID },
    {
      why: 'jobs with many items',
      kept: '`retention.tasks`',
      erased: 'the tasks of the account are deleted',
    },
    'id apps type status total completed failed created_at_ms started_at_ms finished_at_ms lease_owner lease_until_ms attempts error changed_at_ms context_id',
  ),
  task_chunks: personal(
    { items: 'clients that the caller asked about', results: 'the answers' },
    {
      why: 'jobs with many items',
      kept: 'items until they are done, results as `tasks`',
      erased:
        'with the tasks of the account; the caller chose what is in them, so an address is not searched',
    },
    'task_id number from_item',
  ),
  task_callbacks: impersonal('task_id id url sealed created_at_ms told attempts next_at_ms error'),
  idempotency: personal(
    { principal: ACCOUNT_ID, body: 'an answer of the API, encrypted with a key that only the caller has' },
    {
      why: 'to answer a repeated request once',
      kept: '24 hours',
      erased: 'the answers to the account are deleted',
    },
    'key_digest request_hash status headers created_at_ms expires_at_ms',
  ),
  payments: personal(
    {
      payer: 'the account that paid, as on a public ledger',
      account: 'the same, or an agent',
      path: 'the path that was paid for',
    },
    {
      why: 'the ledger: what was paid, owed and refunded',
      kept: '`retention.payments`',
      erased: 'stays: accounts have to be kept. It has no address of a client and no id of an account here',
    },
    'id identity scheme state app rule agent key host amount currency network asset transaction_id why purposes license decision_id created_at_ms day lease_until_ms settled_at_ms served_at_ms pass_until_ms refunded_at_ms refund_note',
  ),
  policies: personal(
    { author: ACCOUNT_ID },
    { why: 'who wrote a policy', kept: 'the newest versions of each app', erased: ID_STAYS },
    'app version document hash restored_version created_at_ms comment',
  ),
  submissions: personal(
    { principal: ACCOUNT_ID, decided_by: ACCOUNT_ID, user_agent: 'the User-Agent of a program' },
    {
      why: 'fingerprints that callers submit',
      kept: 'the newest 10,000 of those that were refused',
      erased: ID_STAYS,
    },
    'id created_at_ms type value agent_name software_id category purposes notes status reasons duplicate_of made_software decided_at_ms rolled_back_at_ms',
  ),
  trials: impersonal('type value since_ms is_open hits first_hit_ms last_hit_ms addresses verdicts'),
  feedback: personal(
    { principal: ACCOUNT_ID },
    { why: 'corrections of verdicts', kept: '`retention.feedback`, the newest 100,000', erased: ID_STAYS },
    'id decision_id at_ms told told_software_id verdict verdict_software_id',
  ),
  feedback_fingerprints: personal(
    { value: 'a JA4H, which ends with hashes of the cookies' },
    {
      why: 'corrections of verdicts',
      kept: '`retention.feedback`, the newest 100,000',
      erased: 'the JA4H of the deleted requests are deleted',
    },
    'decision_id type',
  ),
  detections: personal(
    { document: 'the fingerprints that a caller of `/detect` sent' },
    { why: 'to correct an answer', kept: 'the newest 10,000', erased: 'stays: it has no address' },
    'id at_ms',
  ),
  rate_limits: personal(
    { key: 'the id of an account, or a hash of the network of a caller of the API' },
    { why: 'limits of the API', kept: 'at most a day', erased: 'stays until it ends' },
    'points ends_at_ms',
  ),
  traffic: impersonal('process at_ms document'),
  replays: impersonal('id expires_at_ms'),
  settings: impersonal('name value version changed_at_ms'),
  apps: impersonal('id name team upstream labels quota created_at_ms updated_at_ms'),
  app_hosts: impersonal('key pattern app_id place'),
  software: impersonal('id name kind category description search document origin first_seen_ms'),
  software_names: impersonal('name software_id'),
  signatures: impersonal(
    'type value software_id part_b part_c status source provenance first_seen_ms observations confidence is_decisive',
  ),
  catalogue_state: impersonal('id hash merged_at_ms'),
}
