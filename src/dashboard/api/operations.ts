// Made of the API by `npm run openapi`: see test/dashboard/operations.ts.

export const OPERATIONS = {
  detectAgent: ['POST', '/detect'],
  listAgents: ['GET', '/agents'],
  getAgent: ['GET', '/agents/{agent_id}'],
  listSignatures: ['GET', '/signatures'],
  lookupFingerprint: ['GET', '/fingerprint/lookup'],
  getStats: ['GET', '/stats'],
  getAgentTraffic: ['GET', '/agents/{agent_id}/traffic'],
  submitSignature: ['POST', '/signatures/submit'],
  listSubmissions: ['GET', '/submissions'],
  getSubmission: ['GET', '/submissions/{id}'],
  reviewSubmission: ['POST', '/submissions/{id}/review'],
  listTasks: ['GET', '/tasks'],
  createTask: ['POST', '/tasks/create'],
  getTask: ['GET', '/tasks/{task_id}'],
  cancelTask: ['DELETE', '/tasks/{task_id}'],
  listTools: ['GET', '/tools'],
  executeTool: ['POST', '/execute'],
  listRequests: ['GET', '/requests'],
  getRequestFacets: ['GET', '/requests/facets'],
  exportRequests: ['GET', '/requests/export'],
  getRequest: ['GET', '/requests/{id}'],
  getRequestEvidence: ['GET', '/requests/{id}/evidence'],
  getAgentCard: ['GET', '/agents/{agent_id}/card'],
  getAgentRobots: ['GET', '/agents/{agent_id}/robots'],
  getAgentStats: ['GET', '/stats/agents'],
  getAgentFingerprints: ['GET', '/agents/{agent_id}/fingerprints'],
  getAgentRules: ['GET', '/agents/{agent_id}/rules'],
  listPayments: ['GET', '/payments'],
  exportPayments: ['GET', '/payments/export'],
  sumPayments: ['GET', '/payments/sums'],
  refundPayment: ['POST', '/payments/{id}/refund'],
  listCampaigns: ['GET', '/campaigns'],
  getCampaign: ['GET', '/campaigns/{id}'],
  listEvents: ['GET', '/events'],
  getEvent: ['GET', '/events/{id}'],
  listCases: ['GET', '/cases'],
  getCase: ['GET', '/cases/{id}'],
  updateCase: ['PATCH', '/cases/{id}'],
  listSinks: ['GET', '/sinks'],
  giveFeedback: ['POST', '/feedback'],
  getFleet: ['GET', '/fleet'],
  listFleetProxies: ['GET', '/fleet/proxies'],
  getMe: ['GET', '/me'],
  createKey: ['POST', '/keys'],
  listKeys: ['GET', '/keys'],
  revokeKey: ['DELETE', '/keys/{id}'],
  listGrants: ['GET', '/grants'],
  decideGrant: ['POST', '/grants/{id}/decide'],
  createClient: ['POST', '/clients'],
  listClients: ['GET', '/clients'],
  deleteClient: ['DELETE', '/clients/{client_id}'],
  listSigningKeys: ['GET', '/signing-keys'],
  rotateSigningKey: ['POST', '/signing-keys'],
  listAudit: ['GET', '/audit'],
  erasePerson: ['POST', '/erasures'],
  listApps: ['GET', '/apps'],
  createApp: ['POST', '/apps'],
  getApp: ['GET', '/apps/{app_id}'],
  updateApp: ['PATCH', '/apps/{app_id}'],
  deleteApp: ['DELETE', '/apps/{app_id}'],
  getAppPolicy: ['GET', '/apps/{app_id}/policy'],
  putAppPolicy: ['PUT', '/apps/{app_id}/policy'],
  listAppPolicyVersions: ['GET', '/apps/{app_id}/policy/versions'],
  getAppPolicyVersion: ['GET', '/apps/{app_id}/policy/versions/{version}'],
  restoreAppPolicy: ['POST', '/apps/{app_id}/policy/versions/{version}/restore'],
  explainAppPolicy: ['POST', '/apps/{app_id}/policy/explain'],
  previewAppPolicy: ['POST', '/apps/{app_id}/policy/preview'],
  showAppTerms: ['POST', '/apps/{app_id}/policy/terms'],
  getPolicy: ['GET', '/policy'],
  putPolicy: ['PUT', '/policy'],
  listPolicyVersions: ['GET', '/policy/versions'],
  getPolicyVersion: ['GET', '/policy/versions/{version}'],
  restorePolicy: ['POST', '/policy/versions/{version}/restore'],
  previewPolicy: ['POST', '/policy/preview'],
  explainPolicy: ['POST', '/policy/explain'],
  showTerms: ['POST', '/policy/terms'],
  getSettings: ['GET', '/settings'],
  updateSettings: ['PATCH', '/settings'],
  createTrust: ['POST', '/trust'],
  listTrust: ['GET', '/trust'],
  deleteTrust: ['DELETE', '/trust/{id}'],
  createUser: ['POST', '/users'],
  listUsers: ['GET', '/users'],
  getUser: ['GET', '/users/{id}'],
  updateUser: ['PATCH', '/users/{id}'],
  deleteUser: ['DELETE', '/users/{id}'],
  setOpenid: ['PUT', '/users/{id}/openid'],
  forgetOpenid: ['DELETE', '/users/{id}/openid'],
  createWebhook: ['POST', '/webhooks'],
  listWebhooks: ['GET', '/webhooks'],
  getWebhook: ['GET', '/webhooks/{id}'],
  updateWebhook: ['PATCH', '/webhooks/{id}'],
  deleteWebhook: ['DELETE', '/webhooks/{id}'],
  rotateWebhookSecret: ['POST', '/webhooks/{id}/rotate'],
  testWebhook: ['POST', '/webhooks/{id}/test'],
  replayWebhook: ['POST', '/webhooks/{id}/replay'],
  listDeliveries: ['GET', '/webhooks/{id}/deliveries'],
  getDelivery: ['GET', '/deliveries/{id}'],
  retryDelivery: ['POST', '/deliveries/{id}/retry'],
} as const

export interface Operations {
  detectAgent: {
    path: {  }
    query: {  }
    body: DetectionRequest
    answer: DetectionResult
  }
  listAgents: {
    path: {  }
    query: { category?: AgentCategory; purpose?: "search" | "assistant" | "agent" | "training" | "archive" | "monitor" | "preview" | "seo" | "security"; q?: string; seen_since?: string; app?: string; team?: string; page?: number; limit?: number }
    body: undefined
    answer: { readonly agents: readonly (Agent)[]; readonly total: number; readonly page: number; readonly limit: number }
  }
  getAgent: {
    path: { agent_id: string }
    query: {  }
    body: undefined
    answer: AgentDetail
  }
  listSignatures: {
    path: {  }
    query: { type?: FingerprintType; unknown_only?: boolean; agent_id?: string; q?: string; min_confidence?: number; sort?: "fingerprint" | "-fingerprint" | "first_seen" | "-first_seen" | "confidence" | "-confidence" | "observations" | "-observations"; page?: number; limit?: number }
    body: undefined
    answer: { readonly signatures: readonly (Signature)[]; readonly total: number; readonly page: number; readonly limit: number }
  }
  lookupFingerprint: {
    path: {  }
    query: { ja4?: string; ja4s?: string; ja4h?: string; ja4x?: string; match?: "exact" | "partial" }
    body: undefined
    answer: readonly (FoundSignature)[]
  }
  getStats: {
    path: {  }
    query: { window?: "1h" | "24h" | "7d" | "30d"; bucket?: "1m" | "5m" | "15m" | "1h" | "6h" | "1d"; app?: string; team?: string; include?: string }
    body: undefined
    answer: Statistics
  }
  getAgentTraffic: {
    path: { agent_id: string }
    query: { window?: "1h" | "24h" | "7d" | "30d"; bucket?: "1m" | "5m" | "15m" | "1h" | "6h" | "1d" }
    body: undefined
    answer: AgentTraffic
  }
  submitSignature: {
    path: {  }
    query: {  }
    body: SubmissionRequest | SubmissionsRequest
    answer: { readonly submissions: readonly ({ readonly id: string; readonly status: "pending" | "accepted" | "rejected" | "duplicate"; readonly signature: Signature; readonly reasons: readonly (SubmissionReason)[] })[] }
  }
  listSubmissions: {
    path: {  }
    query: { page?: number; limit?: number; status?: "pending" | "accepted" | "rejected" | "duplicate"; type?: FingerprintType; q?: string }
    body: undefined
    answer: { readonly submissions: readonly (Submission)[]; readonly total: number; readonly page: number; readonly limit: number }
  }
  getSubmission: {
    path: { id: string }
    query: {  }
    body: undefined
    answer: Submission
  }
  reviewSubmission: {
    path: { id: string }
    query: {  }
    body: SubmissionReview
    answer: Submission
  }
  listTasks: {
    path: {  }
    query: {  }
    body: undefined
    answer: { readonly tasks: readonly ({ readonly type: string; readonly title: string; readonly description: string; readonly input_schema: Readonly<Record<string, unknown>>; readonly output_schema: Readonly<Record<string, unknown>>; readonly max_items: number })[]; readonly recent: readonly (Task)[] }
  }
  createTask: {
    path: {  }
    query: {  }
    body: TaskRequest
    answer: CreatedTask
  }
  getTask: {
    path: { task_id: string }
    query: { page?: number; limit?: number }
    body: undefined
    answer: TaskPage
  }
  cancelTask: {
    path: { task_id: string }
    query: {  }
    body: undefined
    answer: undefined
  }
  listTools: {
    path: {  }
    query: {  }
    body: undefined
    answer: { readonly tools: readonly (Tool)[] }
  }
  executeTool: {
    path: {  }
    query: {  }
    body: ExecuteRequest
    answer: ExecuteResult
  }
  listRequests: {
    path: {  }
    query: { id?: string; verdict?: "agent" | "automation" | "human" | "unknown"; category?: "llm-sdk" | "browser-agent" | "orchestrator" | "crawler" | "mcp-client" | "custom"; purpose?: "search" | "assistant" | "agent" | "training" | "archive" | "monitor" | "preview" | "seo" | "security"; agent_id?: string; verified?: "true" | "false" | "web-bot-auth" | "ip-range" | "reverse-dns"; action?: "pass" | "tag" | "block" | "rate_limit" | "tarpit" | "redirect" | "route" | "charge"; rule?: string; conflict?: "spoofed-browser" | "address-foreign" | "host-foreign" | "network-foreign" | "signature-failed" | "signed-as-another" | "signed-with-foreign-fingerprint" | "signed-from-foreign-address"; app?: string; team?: string; host?: string; path?: string; address?: string; asn?: number; country?: string; ja4?: string; ja4h?: string; http_version?: "2" | "3" | "1.0" | "1.1"; proxy?: string; campaign_id?: string; mcp_method?: string; mcp_tool?: string; since?: string; until?: string; order?: "newest" | "oldest"; cursor?: string; limit?: number }
    body: undefined
    answer: { readonly requests: readonly (Request)[]; readonly stopped_at: Time | null; readonly limit: number; readonly next_cursor: string | null }
  }
  getRequestFacets: {
    path: {  }
    query: { id?: string; verdict?: "agent" | "automation" | "human" | "unknown"; category?: "llm-sdk" | "browser-agent" | "orchestrator" | "crawler" | "mcp-client" | "custom"; purpose?: "search" | "assistant" | "agent" | "training" | "archive" | "monitor" | "preview" | "seo" | "security"; agent_id?: string; verified?: "true" | "false" | "web-bot-auth" | "ip-range" | "reverse-dns"; action?: "pass" | "tag" | "block" | "rate_limit" | "tarpit" | "redirect" | "route" | "charge"; rule?: string; conflict?: "spoofed-browser" | "address-foreign" | "host-foreign" | "network-foreign" | "signature-failed" | "signed-as-another" | "signed-with-foreign-fingerprint" | "signed-from-foreign-address"; app?: string; team?: string; host?: string; path?: string; address?: string; asn?: number; country?: string; ja4?: string; ja4h?: string; http_version?: "2" | "3" | "1.0" | "1.1"; proxy?: string; campaign_id?: string; mcp_method?: string; mcp_tool?: string; since?: string; until?: string; facets?: string; limit?: number }
    body: undefined
    answer: { readonly requests: number; readonly estimated: number; readonly stopped_at: Time | null; readonly facets: readonly (RequestFacet)[] }
  }
  exportRequests: {
    path: {  }
    query: { id?: string; verdict?: "agent" | "automation" | "human" | "unknown"; category?: "llm-sdk" | "browser-agent" | "orchestrator" | "crawler" | "mcp-client" | "custom"; purpose?: "search" | "assistant" | "agent" | "training" | "archive" | "monitor" | "preview" | "seo" | "security"; agent_id?: string; verified?: "true" | "false" | "web-bot-auth" | "ip-range" | "reverse-dns"; action?: "pass" | "tag" | "block" | "rate_limit" | "tarpit" | "redirect" | "route" | "charge"; rule?: string; conflict?: "spoofed-browser" | "address-foreign" | "host-foreign" | "network-foreign" | "signature-failed" | "signed-as-another" | "signed-with-foreign-fingerprint" | "signed-from-foreign-address"; app?: string; team?: string; host?: string; path?: string; address?: string; asn?: number; country?: string; ja4?: string; ja4h?: string; http_version?: "2" | "3" | "1.0" | "1.1"; proxy?: string; campaign_id?: string; mcp_method?: string; mcp_tool?: string; since?: string; until?: string; format?: "ndjson" | "csv" | "parquet"; limit?: number }
    body: undefined
    answer: undefined
  }
  getRequest: {
    path: { id: string }
    query: {  }
    body: undefined
    answer: Request
  }
  getRequestEvidence: {
    path: { id: string }
    query: {  }
    body: undefined
    answer: RequestEvidence
  }
  getAgentCard: {
    path: { agent_id: string }
    query: {  }
    body: undefined
    answer: FoundAgentCard
  }
  getAgentRobots: {
    path: { agent_id: string }
    query: { window?: "1h" | "24h" | "7d" | "30d"; app?: string; team?: string }
    body: undefined
    answer: AgentRobots
  }
  getAgentStats: {
    path: {  }
    query: { window?: "1h" | "24h" | "7d" | "30d"; category?: "llm-sdk" | "browser-agent" | "orchestrator" | "crawler" | "mcp-client" | "custom"; purpose?: "search" | "assistant" | "agent" | "training" | "archive" | "monitor" | "preview" | "seo" | "security"; q?: string; app?: string; team?: string; limit?: number }
    body: undefined
    answer: AgentStatistics
  }
  getAgentFingerprints: {
    path: { agent_id: string }
    query: { window?: "1h" | "24h" | "7d" | "30d"; app?: string; team?: string }
    body: undefined
    answer: AgentFingerprints
  }
  getAgentRules: {
    path: { agent_id: string }
    query: { app?: string }
    body: undefined
    answer: AgentRules
  }
  listPayments: {
    path: {  }
    query: { page?: number; limit?: number; app?: string; team?: string; agent_id?: string; state?: "open" | "paid" | "owed" | "refused" | "refunded"; scheme?: "x402" | "crawler-price" | "license"; since?: string; until?: string }
    body: undefined
    answer: { readonly payments: readonly (Payment)[]; readonly total: number; readonly page: number; readonly limit: number }
  }
  exportPayments: {
    path: {  }
    query: { app?: string; team?: string; agent_id?: string; state?: "open" | "paid" | "owed" | "refused" | "refunded"; scheme?: "x402" | "crawler-price" | "license"; since?: string; until?: string; format?: "ndjson" | "csv"; limit?: number }
    body: undefined
    answer: undefined
  }
  sumPayments: {
    path: {  }
    query: { app?: string; team?: string; agent_id?: string; state?: "open" | "paid" | "owed" | "refused" | "refunded"; scheme?: "x402" | "crawler-price" | "license"; since?: string; until?: string; by?: "agent" | "app" | "day" }
    body: undefined
    answer: PaymentSums
  }
  refundPayment: {
    path: { id: string }
    query: {  }
    body: PaymentRefund
    answer: Payment
  }
  listCampaigns: {
    path: {  }
    query: { page?: number; limit?: number }
    body: undefined
    answer: { readonly campaigns: readonly (Campaign)[]; readonly total: number; readonly page: number; readonly limit: number }
  }
  getCampaign: {
    path: { id: string }
    query: {  }
    body: undefined
    answer: Campaign
  }
  listEvents: {
    path: {  }
    query: { types?: string; category?: string; purpose?: string; agent?: string; app?: string; team?: string; case_id?: string; min_severity?: "low" | "medium" | "high" | "critical"; min_confidence?: string; since?: string; until?: string; last_event_id?: string; page?: number; limit?: number }
    body: undefined
    answer: { readonly events: readonly (Event)[]; readonly total: number; readonly page: number; readonly limit: number }
  }
  getEvent: {
    path: { id: string }
    query: {  }
    body: undefined
    answer: Event
  }
  listCases: {
    path: {  }
    query: { page?: number; limit?: number; status?: "open" | "accepted" | "false_alarm"; reason?: string; app?: string; team?: string; since?: string; until?: string }
    body: undefined
    answer: { readonly cases: readonly (Case)[]; readonly total: number; readonly page: number; readonly limit: number }
  }
  getCase: {
    path: { id: string }
    query: {  }
    body: undefined
    answer: Case
  }
  updateCase: {
    path: { id: string }
    query: {  }
    body: CaseChanges
    answer: Case
  }
  listSinks: {
    path: {  }
    query: {  }
    body: undefined
    answer: Sinks
  }
  giveFeedback: {
    path: {  }
    query: {  }
    body: FeedbackRequest
    answer: Feedback
  }
  getFleet: {
    path: {  }
    query: {  }
    body: undefined
    answer: Fleet
  }
  listFleetProxies: {
    path: {  }
    query: { state?: "serving" | "unready" | "starting" | "stale"; version?: string; current?: "true" | "false"; page?: number; limit?: number }
    body: undefined
    answer: { readonly proxies: readonly (FleetProxy)[]; readonly total: number; readonly page: number; readonly limit: number }
  }
  getMe: {
    path: {  }
    query: {  }
    body: undefined
    answer: Principal
  }
  createKey: {
    path: {  }
    query: {  }
    body: KeyRequest
    answer: NewKey
  }
  listKeys: {
    path: {  }
    query: { page?: number; limit?: number }
    body: undefined
    answer: { readonly keys: readonly (Key)[]; readonly total: number; readonly page: number; readonly limit: number }
  }
  revokeKey: {
    path: { id: string }
    query: {  }
    body: undefined
    answer: undefined
  }
  listGrants: {
    path: {  }
    query: { state?: GrantState; page?: number; limit?: number }
    body: undefined
    answer: { readonly grants: readonly (Grant)[]; readonly total: number; readonly page: number; readonly limit: number }
  }
  decideGrant: {
    path: { id: string }
    query: {  }
    body: GrantDecision
    answer: { readonly id: string; readonly decision: "approve" | "deny"; readonly scopes: readonly ("read" | "detect" | "write" | "admin" | "mcp")[] }
  }
  createClient: {
    path: {  }
    query: {  }
    body: ClientRequest
    answer: NewClient
  }
  listClients: {
    path: {  }
    query: { page?: number; limit?: number }
    body: undefined
    answer: { readonly clients: readonly (Client)[]; readonly total: number; readonly page: number; readonly limit: number }
  }
  deleteClient: {
    path: { client_id: string }
    query: {  }
    body: undefined
    answer: undefined
  }
  listSigningKeys: {
    path: {  }
    query: {  }
    body: undefined
    answer: { readonly signing_keys: readonly (SigningKey)[] }
  }
  rotateSigningKey: {
    path: {  }
    query: {  }
    body: SigningKeyRequest
    answer: SigningKey
  }
  listAudit: {
    path: {  }
    query: { page?: number; limit?: number; app?: string; action?: string; principal?: string; since?: string }
    body: undefined
    answer: { readonly audit: readonly (AuditEntry)[]; readonly total: number; readonly page: number; readonly limit: number }
  }
  erasePerson: {
    path: {  }
    query: {  }
    body: ErasureRequest
    answer: Erasure
  }
  listApps: {
    path: {  }
    query: { team?: string; page?: number; limit?: number }
    body: undefined
    answer: { readonly apps: readonly (App)[]; readonly total: number; readonly page: number; readonly limit: number }
  }
  createApp: {
    path: {  }
    query: {  }
    body: AppRequest
    answer: App
  }
  getApp: {
    path: { app_id: string }
    query: {  }
    body: undefined
    answer: App
  }
  updateApp: {
    path: { app_id: string }
    query: {  }
    body: AppChanges
    answer: App
  }
  deleteApp: {
    path: { app_id: string }
    query: {  }
    body: undefined
    answer: undefined
  }
  getAppPolicy: {
    path: { app_id: string }
    query: {  }
    body: undefined
    answer: AppPolicyInForce
  }
  putAppPolicy: {
    path: { app_id: string }
    query: { comment?: string }
    body: AppPolicy | AppPolicyAnswered
    answer: AppPolicyInForce
  }
  listAppPolicyVersions: {
    path: { app_id: string }
    query: { page?: number; limit?: number }
    body: undefined
    answer: { readonly versions: readonly (PolicyVersion)[]; readonly total: number; readonly page: number; readonly limit: number }
  }
  getAppPolicyVersion: {
    path: { app_id: string; version: number }
    query: {  }
    body: undefined
    answer: { readonly version: number; readonly hash: string; readonly author: string; readonly comment: string | null; readonly created_at: Time; readonly restored_version: number | null; readonly in_force: boolean; readonly policy: AppPolicy }
  }
  restoreAppPolicy: {
    path: { app_id: string; version: number }
    query: { comment?: string }
    body: undefined
    answer: AppPolicyInForce
  }
  explainAppPolicy: {
    path: { app_id: string }
    query: {  }
    body: AppPolicyExplanationRequest
    answer: PolicyExplanation
  }
  previewAppPolicy: {
    path: { app_id: string }
    query: {  }
    body: AppPolicyPreviewRequest
    answer: PolicyPreview
  }
  showAppTerms: {
    path: { app_id: string }
    query: {  }
    body: AppPolicyTermsRequest
    answer: PolicyTerms
  }
  getPolicy: {
    path: {  }
    query: {  }
    body: undefined
    answer: PolicyInForce
  }
  putPolicy: {
    path: {  }
    query: { comment?: string }
    body: Policy | PolicyAnswered
    answer: PolicyInForce
  }
  listPolicyVersions: {
    path: {  }
    query: { page?: number; limit?: number }
    body: undefined
    answer: { readonly versions: readonly (PolicyVersion)[]; readonly total: number; readonly page: number; readonly limit: number }
  }
  getPolicyVersion: {
    path: { version: number }
    query: {  }
    body: undefined
    answer: { readonly version: number; readonly hash: string; readonly author: string; readonly comment: string | null; readonly created_at: Time; readonly restored_version: number | null; readonly in_force: boolean; readonly policy: Policy }
  }
  restorePolicy: {
    path: { version: number }
    query: { comment?: string }
    body: undefined
    answer: PolicyInForce
  }
  previewPolicy: {
    path: {  }
    query: {  }
    body: PolicyPreviewRequest
    answer: PolicyPreview
  }
  explainPolicy: {
    path: {  }
    query: {  }
    body: PolicyExplanationRequest
    answer: PolicyExplanation
  }
  showTerms: {
    path: {  }
    query: {  }
    body: PolicyTermsRequest
    answer: PolicyTerms
  }
  getSettings: {
    path: {  }
    query: {  }
    body: undefined
    answer: Settings
  }
  updateSettings: {
    path: {  }
    query: {  }
    body: SettingChanges
    answer: Settings
  }
  createTrust: {
    path: {  }
    query: {  }
    body: TrustRequest
    answer: Trust
  }
  listTrust: {
    path: {  }
    query: { page?: number; limit?: number }
    body: undefined
    answer: { readonly trust: readonly (Trust)[]; readonly total: number; readonly page: number; readonly limit: number }
  }
  deleteTrust: {
    path: { id: string }
    query: {  }
    body: undefined
    answer: undefined
  }
  createUser: {
    path: {  }
    query: {  }
    body: UserRequest
    answer: User
  }
  listUsers: {
    path: {  }
    query: { page?: number; limit?: number }
    body: undefined
    answer: { readonly users: readonly (User)[]; readonly total: number; readonly page: number; readonly limit: number }
  }
  getUser: {
    path: { id: string }
    query: {  }
    body: undefined
    answer: User
  }
  updateUser: {
    path: { id: string }
    query: {  }
    body: UserChanges
    answer: User
  }
  deleteUser: {
    path: { id: string }
    query: {  }
    body: undefined
    answer: undefined
  }
  setOpenid: {
    path: { id: string }
    query: {  }
    body: OpenidRequest
    answer: User
  }
  forgetOpenid: {
    path: { id: string }
    query: {  }
    body: undefined
    answer: undefined
  }
  createWebhook: {
    path: {  }
    query: {  }
    body: WebhookRequest
    answer: WebhookWithSecret
  }
  listWebhooks: {
    path: {  }
    query: { page?: number; limit?: number }
    body: undefined
    answer: { readonly webhooks: readonly (Webhook)[]; readonly total: number; readonly page: number; readonly limit: number }
  }
  getWebhook: {
    path: { id: string }
    query: {  }
    body: undefined
    answer: Webhook
  }
  updateWebhook: {
    path: { id: string }
    query: {  }
    body: WebhookChanges
    answer: Webhook
  }
  deleteWebhook: {
    path: { id: string }
    query: {  }
    body: undefined
    answer: undefined
  }
  rotateWebhookSecret: {
    path: { id: string }
    query: {  }
    body: undefined
    answer: WebhookWithSecret
  }
  testWebhook: {
    path: { id: string }
    query: {  }
    body: undefined
    answer: Delivery
  }
  replayWebhook: {
    path: { id: string }
    query: {  }
    body: WebhookReplay
    answer: WebhookReplayed
  }
  listDeliveries: {
    path: { id: string }
    query: { page?: number; limit?: number; status?: "pending" | "delivered" | "failed"; since?: string; until?: string }
    body: undefined
    answer: { readonly deliveries: readonly (Delivery)[]; readonly total: number; readonly page: number; readonly limit: number }
  }
  getDelivery: {
    path: { id: string }
    query: {  }
    body: undefined
    answer: DeliveryWithBody
  }
  retryDelivery: {
    path: { id: string }
    query: {  }
    body: undefined
    answer: Delivery
  }
}

export type DetectionRequest = { readonly user_agent?: string | null; readonly ja4?: string | null; readonly ja4h?: string | null; readonly headers?: Readonly<Record<string, string | readonly (string)[]>> | null; readonly ja4s?: string | null; readonly ja4x?: string | null; readonly http2?: string | null; readonly method?: string | null; readonly path?: string | null; readonly http_version?: string | null; readonly ip?: string | null }

export type AgentCategory = "llm-sdk" | "browser-agent" | "orchestrator" | "crawler" | "mcp-client" | "custom"

export type FingerprintType = "ja4" | "ja4s" | "ja4h" | "ja4x"

export type SubmissionRequest = { readonly fingerprint: string; readonly type: FingerprintType; readonly agent_name?: string | null; readonly category?: "llm-sdk" | "browser-agent" | "orchestrator" | "crawler" | "mcp-client" | "custom" | null; readonly purpose?: readonly ("search" | "assistant" | "agent" | "training" | "archive" | "monitor" | "preview" | "seo" | "security")[] | null; readonly user_agent?: string | null; readonly notes?: string | null }

export type SubmissionsRequest = { readonly submissions: readonly (SubmissionRequest)[] }

export type SubmissionReview = { readonly decision: "accept" | "reject" | "rollback"; readonly agent_id?: string | null; readonly despite_people?: boolean }

export type TaskRequest = { readonly type: "detect" | "lookup" | "compare" | "explain" | "analyze_capture"; readonly items?: readonly (unknown)[]; readonly input?: unknown; readonly callback_url?: string | null }

export type ExecuteRequest = { readonly tool: string; readonly arguments?: unknown }

export type PaymentRefund = { readonly note?: string }

export type CaseChanges = { readonly status?: "open" | "accepted" | "false_alarm"; readonly note?: string | null; readonly verdict?: "human" | "agent" | null }

export type FeedbackRequest = { readonly request_id?: string; readonly decision_id?: string; readonly verdict: "agent" | "human"; readonly agent?: string }

export type KeyRequest = { readonly name: string; readonly access?: "read" | "write" | "admin"; readonly scopes?: readonly (Scope)[]; readonly apps?: readonly (string)[] | "*"; readonly plan?: Plan; readonly expires_at?: string }

export type Scope = "read" | "detect" | "write" | "admin" | "mcp"

export type Plan = "free" | "standard" | "unlimited"

export type GrantState = "waiting" | "approved" | "denied" | "finished"

export type GrantDecision = { readonly decision: "approve" | "deny"; readonly scopes?: readonly ("read" | "detect" | "write" | "admin" | "mcp")[] }

export type ClientRequest = { readonly name: string; readonly grant_types: readonly (GrantType)[]; readonly redirect_uris?: readonly (string)[]; readonly scopes: readonly (Scope)[]; readonly apps?: readonly (string)[] | "*"; readonly token_endpoint_auth_method?: ClientAuthMethod; readonly jwks?: Readonly<Record<string, unknown>>; readonly plan?: "free" | "standard" | "unlimited" }

export type GrantType = "client_credentials" | "authorization_code" | "refresh_token"

export type ClientAuthMethod = "client_secret_basic" | "client_secret_post" | "private_key_jwt" | "none"

export type SigningKeyRequest = { readonly drop_old?: boolean }

export type ErasureRequest = { readonly address?: string; readonly user?: string; readonly dry_run?: boolean }

export type AppRequest = { readonly id: string; readonly name?: string | null; readonly team?: string | null; readonly hosts?: readonly (string)[]; readonly upstream?: string | null; readonly labels?: readonly (string)[]; readonly quota?: AppQuota | null }

export type AppQuota = { readonly minute?: number; readonly hour?: number; readonly day?: number }

export type AppChanges = { readonly name?: string | null; readonly team?: string | null; readonly hosts?: readonly (string)[]; readonly upstream?: string | null; readonly labels?: readonly (string)[]; readonly quota?: AppQuota | null }

export type AppPolicy = { readonly rules?: readonly ({ readonly name: string; readonly when: Readonly<Record<string, unknown>> | string; readonly action: string | Readonly<Record<string, unknown>>; readonly dry_run?: boolean; readonly expires?: string })[]; readonly otherwise?: string | Readonly<Record<string, unknown>>; readonly unknown_signer?: "pass" | { readonly wait: string } }

export type AppPolicyAnswered = { readonly policy: AppPolicy; readonly source?: "file" | "api" | "default"; readonly file?: string | null; readonly hash?: string; readonly version?: number | null; readonly author?: string | null; readonly comment?: string | null; readonly created_at?: Time | null; readonly restored_version?: number | null; readonly in_force_since?: Time; readonly warnings?: readonly (PolicyWarning)[]; readonly problems?: readonly (string)[]; readonly in_force?: boolean }

export type Time = string

export type PolicyWarning = { readonly pointer: string; readonly detail: string }

export type AppPolicyExplanationRequest = { readonly request: WrittenRequest; readonly policy?: AppPolicy }

export type WrittenRequest = { readonly method?: string; readonly host?: string; readonly path?: string; readonly http?: "1.1" | "2" | 1.1 | 2; readonly address?: string; readonly headers?: Readonly<Record<string, unknown>> | readonly (readonly (string)[])[]; readonly ja4?: string; readonly ja4h?: string; readonly stable?: string; readonly http2?: string; readonly hello?: "malformed" | "not-tls"; readonly campaign?: string; readonly mcp?: { readonly method?: string; readonly tool?: string; readonly resource?: string }; readonly verdict?: { readonly kind: "agent" | "automation" | "human" | "unknown"; readonly agent?: string | { readonly id: string; readonly name?: string; readonly category?: "llm-sdk" | "browser-agent" | "orchestrator" | "crawler" | "mcp-client" | "custom"; readonly purpose?: readonly ("search" | "assistant" | "agent" | "training" | "archive" | "monitor" | "preview" | "seo" | "security")[] }; readonly software?: string | { readonly id: string; readonly name?: string; readonly kind?: "agent" | "tool" | "browser" }; readonly confidence?: number; readonly name_confidence?: number; readonly verified?: "web-bot-auth" | "ip-range" | "reverse-dns"; readonly signer?: string; readonly evidence?: readonly (string)[] } }

export type AppPolicyPreviewRequest = { readonly policy: AppPolicy; readonly window?: "1h" | "24h" | "7d" | "30d"; readonly against?: "recorded" | "current"; readonly time_ms?: number }

export type AppPolicyTermsRequest = { readonly policy?: AppPolicy; readonly host?: string; readonly robots?: string }

export type Policy = { readonly rules?: readonly ({ readonly name: string; readonly when: Readonly<Record<string, unknown>> | string; readonly action: string | Readonly<Record<string, unknown>>; readonly dry_run?: boolean; readonly expires?: string })[]; readonly first?: readonly ({ readonly name: string; readonly when: Readonly<Record<string, unknown>> | string; readonly action: string | Readonly<Record<string, unknown>>; readonly dry_run?: boolean; readonly expires?: string })[]; readonly last?: readonly ({ readonly name: string; readonly when: Readonly<Record<string, unknown>> | string; readonly action: string | Readonly<Record<string, unknown>>; readonly dry_run?: boolean; readonly expires?: string })[]; readonly otherwise?: string | Readonly<Record<string, unknown>>; readonly unknown_signer?: "pass" | { readonly wait: string } }

export type PolicyAnswered = { readonly policy: Policy; readonly source?: "file" | "api" | "default"; readonly file?: string | null; readonly hash?: string; readonly version?: number | null; readonly author?: string | null; readonly comment?: string | null; readonly created_at?: Time | null; readonly restored_version?: number | null; readonly in_force_since?: Time; readonly warnings?: readonly (PolicyWarning)[]; readonly problems?: readonly (string)[]; readonly in_force?: boolean }

export type PolicyPreviewRequest = { readonly policy: Policy; readonly app?: string; readonly window?: "1h" | "24h" | "7d" | "30d"; readonly against?: "recorded" | "current"; readonly time_ms?: number }

export type PolicyExplanationRequest = { readonly request: WrittenRequest; readonly app?: string; readonly policy?: Policy }

export type PolicyTermsRequest = { readonly app?: string; readonly policy?: Policy; readonly host?: string; readonly robots?: string }

export type SettingChanges = { readonly 'log.level'?: "debug" | "info" | "warn" | "error" | "silent" | null; readonly 'manage.access_log'?: boolean | null; readonly 'limits.free_per_day'?: number | null; readonly 'limits.standard_per_hour'?: number | null; readonly 'submissions.auto_accept'?: boolean | null }

export type TrustRequest = { readonly agent_id?: string; readonly document?: Readonly<Record<string, unknown>>; readonly jwk?: Readonly<Record<string, unknown>>; readonly scopes: readonly (Scope)[]; readonly apps?: readonly (string)[] | "*"; readonly name?: string; readonly plan?: Plan }

export type UserRequest = { readonly email: string; readonly password?: string; readonly scopes: readonly (Scope)[]; readonly apps?: readonly (string)[] | "*" }

export type UserChanges = { readonly scopes?: readonly (Scope)[]; readonly apps?: readonly (string)[] | "*"; readonly password?: string; readonly one_time_codes?: false; readonly passkeys?: false; readonly disabled?: boolean }

export type OpenidRequest = { readonly subject: string }

export type WebhookRequest = { readonly url: string; readonly events: readonly (EventType)[]; readonly filters?: WebhookFilters | null; readonly description?: string | null; readonly enabled?: boolean; readonly apps?: readonly (string)[] | "*" }

export type EventType = "new_agent" | "new_signature" | "threat_detected" | "payment"

export type WebhookFilters = { readonly categories?: readonly ("llm-sdk" | "browser-agent" | "orchestrator" | "crawler" | "mcp-client" | "custom")[]; readonly purposes?: readonly ("search" | "assistant" | "agent" | "training" | "archive" | "monitor" | "preview" | "seo" | "security")[]; readonly agents?: readonly (string)[]; readonly apps?: readonly (string)[]; readonly min_severity?: "low" | "medium" | "high" | "critical"; readonly min_confidence?: number }

export type WebhookChanges = { readonly url?: string; readonly events?: readonly (EventType)[]; readonly filters?: WebhookFilters | null; readonly description?: string | null; readonly enabled?: boolean }

export type WebhookReplay = { readonly since: string; readonly until?: string; readonly types?: readonly (EventType)[] }

export type Problem = { readonly type: string; readonly title: string; readonly status: number; readonly detail: string; readonly instance?: string; readonly code: "invalid_request" | "missing_token" | "invalid_token" | "expired_token" | "use_dpop_nonce" | "insufficient_scope" | "needs_all_apps" | "origin_not_allowed" | "not_found" | "method_not_allowed" | "not_acceptable" | "request_timeout" | "conflict" | "idempotency_conflict" | "idempotency_in_progress" | "precondition_failed" | "too_large" | "uri_too_long" | "unsupported_media_type" | "expectation_failed" | "precondition_required" | "rate_limited" | "header_too_large" | "internal" | "unavailable"; readonly request_id?: string; readonly errors?: readonly ({ readonly pointer: string; readonly detail: string })[] }

export type DetectionResult = { readonly is_agent: boolean; readonly confidence: number; readonly agent_name: string | null; readonly agent_category: "llm-sdk" | "browser-agent" | "orchestrator" | "crawler" | "mcp-client" | "custom" | null; readonly fingerprints: { readonly ja4: string; readonly ja4s: string; readonly ja4h: string }; readonly agent_purpose: readonly ("search" | "assistant" | "agent" | "training" | "archive" | "monitor" | "preview" | "seo" | "security")[]; readonly name_confidence: number; readonly agent_id: string | null; readonly verified: string | null; readonly proof: Proof | null; readonly conflicts: readonly (string)[]; readonly verdict: "agent" | "automation" | "human" | "unknown"; readonly software: { readonly id: string; readonly name: string; readonly kind: "agent" | "tool" | "browser" } | null; readonly evidence: readonly (Evidence)[]; readonly request_id: string }

export type Proof = { readonly method: "web-bot-auth" | "ip-range" | "reverse-dns"; readonly agent: string; readonly key: string | null }

export type Evidence = { readonly kind: string; readonly detail: string; readonly weight: number }

export type Agent = { readonly id: string; readonly name: string; readonly description: string; readonly purpose: readonly ("search" | "assistant" | "agent" | "training" | "archive" | "monitor" | "preview" | "seo" | "security")[]; readonly fingerprints: { readonly ja4: readonly (string)[]; readonly ja4s: readonly (string)[]; readonly ja4h: readonly (string)[]; readonly ja4x: readonly (string)[] }; readonly first_seen: Time; readonly last_seen: Time | null; readonly category: AgentCategory }

export type AgentDetail = { readonly id: string; readonly name: string; readonly description: string; readonly purpose: readonly ("search" | "assistant" | "agent" | "training" | "archive" | "monitor" | "preview" | "seo" | "security")[]; readonly fingerprints: { readonly ja4: readonly (string)[]; readonly ja4s: readonly (string)[]; readonly ja4h: readonly (string)[]; readonly ja4x: readonly (string)[] }; readonly first_seen: Time; readonly last_seen: Time | null; readonly category: AgentCategory | null; readonly kind: "agent" | "tool" | "browser"; readonly vendor: string | null; readonly homepage: string | null; readonly documentation: string | null; readonly user_agent_patterns: readonly ({ readonly pattern: string; readonly match: "product" | "whole" })[]; readonly purpose_sources: readonly ({ readonly purpose: "search" | "assistant" | "agent" | "training" | "archive" | "monitor" | "preview" | "seo" | "security"; readonly source: string; readonly date: string })[]; readonly robots_token: string | null; readonly verification: { readonly methods: readonly ("web-bot-auth" | "ip-range" | "reverse-dns")[]; readonly sources: readonly ({ readonly method: "web-bot-auth" | "ip-range" | "reverse-dns"; readonly source: string })[] }; readonly signatures: readonly (Signature)[]; readonly sightings: { readonly '24h': number; readonly '7d': number; readonly total: number }; readonly versions: readonly (string)[] }

export type Signature = { readonly fingerprint: string; readonly type: FingerprintType; readonly agent_name: string | null; readonly agent_id: string | null; readonly kind: "agent" | "tool" | "browser" | null; readonly first_seen: Time; readonly last_seen: Time | null; readonly confidence: number; readonly observations: number; readonly requests_seen: number; readonly source: "builtin" | "submitted" | "observed"; readonly status: "active" | "trial" | "unknown" | "retired"; readonly decisive: boolean }

export type FoundSignature = { readonly fingerprint: string; readonly type: FingerprintType; readonly agent_name: string | null; readonly agent_id: string | null; readonly kind: "agent" | "tool" | "browser" | null; readonly first_seen: Time; readonly last_seen: Time | null; readonly confidence: number; readonly observations: number; readonly requests_seen: number; readonly source: "builtin" | "submitted" | "observed"; readonly status: "active" | "trial" | "unknown" | "retired"; readonly decisive: boolean; readonly score?: number }

export type Statistics = { readonly window: "1h" | "24h" | "7d" | "30d"; readonly bucket: "1m" | "5m" | "15m" | "1h" | "6h" | "1d"; readonly agents: { readonly total: number; readonly seen: number; readonly new: number | null }; readonly fingerprints: { readonly unique: number; readonly by_type: { readonly ja4: number; readonly ja4s: number; readonly ja4h: number; readonly ja4x: number }; readonly unknown: number } | null; readonly detection: { readonly requests: number; readonly agents: number; readonly rate: number; readonly blocked: number; readonly tagged: number; readonly by_verdict: Readonly<Record<string, number>>; readonly blocked_by_verdict: Readonly<Record<string, number>>; readonly verified: number; readonly verified_by: Readonly<Record<string, number>>; readonly by_category: Readonly<Record<string, number>>; readonly by_purpose: Readonly<Record<string, number>>; readonly by_action: Readonly<Record<string, number>>; readonly by_confidence: Readonly<Record<string, number>>; readonly by_agent: readonly ({ readonly agent_id: string; readonly agent_name: string; readonly agent_category: string | null; readonly agent_purpose: readonly (string)[]; readonly requests: number; readonly blocked: number })[] }; readonly by_app: readonly ({ readonly app: string; readonly requests: number; readonly agents: number; readonly blocked: number })[] | null; readonly previous: { readonly detection: { readonly requests: number; readonly agents: number; readonly rate: number; readonly blocked: number; readonly tagged: number; readonly by_verdict: Readonly<Record<string, number>>; readonly blocked_by_verdict: Readonly<Record<string, number>>; readonly verified: number; readonly verified_by: Readonly<Record<string, number>>; readonly by_category: Readonly<Record<string, number>>; readonly by_purpose: Readonly<Record<string, number>>; readonly by_action: Readonly<Record<string, number>>; readonly by_confidence: Readonly<Record<string, number>> }; readonly series: readonly ({ readonly at: Time; readonly requests: number; readonly agents: number; readonly blocked: number })[] } | null; readonly counted_since: Time | null; readonly series: readonly ({ readonly at: Time; readonly requests: number; readonly agents: number; readonly blocked: number; readonly by_verdict: Readonly<Record<string, number>>; readonly by_action: Readonly<Record<string, number>>; readonly by_category: Readonly<Record<string, number>>; readonly by_purpose: Readonly<Record<string, number>> })[]; readonly generated_at: Time }

export type AgentTraffic = { readonly agent_id: string; readonly window: "1h" | "24h" | "7d" | "30d"; readonly bucket: "1m" | "5m" | "15m" | "1h" | "6h" | "1d"; readonly requests: number; readonly blocked: number; readonly series: readonly ({ readonly at: Time; readonly requests: number; readonly blocked: number })[] }

export type SubmissionReason = { readonly code: "impossible" | "empty" | "odd" | "one_visitor" | "servers_answer" | "look_alike_name" | "name_of_browser" | "name_of_tool" | "name_like_known" | "known_agent" | "no_agent" | "browser_fingerprint" | "browser_of_agent" | "parts_of_browsers" | "known" | "known_of_others" | "parts_known" | "new" | "submitted_before" | "submitted_for_another" | "user_agent_agrees" | "user_agent_names" | "user_agent_unknown" | "user_agent_of_browser" | "user_agent_of_another" | "not_seen" | "seen" | "seen_agrees" | "seen_of_people" | "seen_of_others"; readonly detail: string }

export type Submission = { readonly id: string; readonly status: "pending" | "accepted" | "rejected" | "duplicate"; readonly fingerprint: string; readonly type: FingerprintType; readonly agent_name: string | null; readonly agent_id: string | null; readonly category: "llm-sdk" | "browser-agent" | "orchestrator" | "crawler" | "mcp-client" | "custom" | null; readonly purpose: readonly ("search" | "assistant" | "agent" | "training" | "archive" | "monitor" | "preview" | "seo" | "security")[]; readonly user_agent: string | null; readonly notes: string | null; readonly reasons: readonly (SubmissionReason)[]; readonly duplicate_of: string | null; readonly submitted_by: string; readonly created_at: Time; readonly decided_by: string | null; readonly decided_at: Time | null; readonly rolled_back_at: Time | null; readonly trial: SubmissionTrial | null }

export type SubmissionTrial = { readonly since: Time; readonly is_counting: boolean; readonly hits: number; readonly addresses: number; readonly first_hit_at: Time | null; readonly last_hit_at: Time | null; readonly agreements: number; readonly undecided: number; readonly disagreements: { readonly total: number; readonly by: readonly ({ readonly verdict: string; readonly agent_id: string | null; readonly requests: number })[] }; readonly false_positive_reports: number; readonly confirmations: number; readonly contradictions: number }

export type Task = { readonly task_id: string; readonly type: string; readonly status: "queued" | "running" | "completed" | "failed" | "cancelled"; readonly total: number; readonly completed: number; readonly failed: number; readonly error: string | null; readonly created_at: Time; readonly started_at: Time | null; readonly finished_at: Time | null }

export type CreatedTask = { readonly task_id: string; readonly type: string; readonly status: "queued" | "running" | "completed" | "failed" | "cancelled"; readonly total: number; readonly completed: number; readonly failed: number; readonly error: string | null; readonly created_at: Time; readonly started_at: Time | null; readonly finished_at: Time | null; readonly results?: readonly (ItemResult)[]; readonly callback_secret?: string }

export type ItemResult = { readonly index: number; readonly status: "ok" | "error"; readonly result?: unknown; readonly error?: { readonly code: string; readonly detail: string; readonly errors?: readonly ({ readonly pointer: string; readonly detail: string })[] } }

export type TaskPage = { readonly task_id: string; readonly type: string; readonly status: "queued" | "running" | "completed" | "failed" | "cancelled"; readonly total: number; readonly completed: number; readonly failed: number; readonly error: string | null; readonly created_at: Time; readonly started_at: Time | null; readonly finished_at: Time | null; readonly results: readonly (ItemResult)[]; readonly page: number; readonly limit: number }

export type Tool = { readonly name: string; readonly title: string; readonly description: string; readonly input_schema: Readonly<Record<string, unknown>>; readonly output_schema: Readonly<Record<string, unknown>>; readonly scopes: readonly ("read" | "detect" | "write" | "admin" | "mcp")[]; readonly protocols: readonly ("rest" | "mcp" | "a2a")[]; readonly annotations: { readonly readOnlyHint: boolean; readonly destructiveHint: boolean; readonly idempotentHint: boolean; readonly openWorldHint: boolean } }

export type ExecuteResult = { readonly tool: string; readonly result: Readonly<Record<string, unknown>>; readonly is_error: boolean; readonly duration_ms: number }

export type Request = { readonly id: string; readonly seen_at: Time; readonly proxy: string; readonly app: string; readonly method: string; readonly host: string | null; readonly path: string; readonly address: string; readonly network: { readonly asn: number; readonly name: string | null; readonly country: string | null } | null; readonly user_agent: string | null; readonly verdict: "agent" | "automation" | "human" | "unknown"; readonly confidence: number; readonly name_confidence: number; readonly agent_id: string | null; readonly agent_name: string | null; readonly agent_category: string | null; readonly agent_purpose: readonly (string)[]; readonly software_id: string | null; readonly software_name: string | null; readonly verified: string | null; readonly identity: string | null; readonly conflicts: readonly (string)[]; readonly fingerprints: { readonly ja4: string; readonly ja4s: string; readonly ja4h: string; readonly ja4x: string }; readonly evidence: readonly (string)[]; readonly campaign_id: string | null; readonly mcp_method: string | null; readonly mcp_tool: string | null; readonly rule: string; readonly layer: "first" | "app" | "last" | null; readonly action: string; readonly dry_run: string | null; readonly sampled: number }

export type RequestFacet = { readonly facet: "app" | "host" | "path" | "address" | "asn" | "country" | "agent_id" | "category" | "purpose" | "verdict" | "action" | "rule" | "verified" | "conflict" | "ja4" | "http_version" | "proxy" | "ja4h"; readonly values: readonly ({ readonly value: string | null; readonly name: string | null; readonly requests: number; readonly estimated: number })[]; readonly others: number }

export type RequestEvidence = { readonly request_id: string; readonly verdict: "agent" | "automation" | "human" | "unknown"; readonly program: "agent" | "automation"; readonly start: number; readonly evidence: readonly ({ readonly kind: string; readonly detail: string; readonly weight: number })[]; readonly sum: number }

export type FoundAgentCard = { readonly agent_id: string; readonly url: string | null; readonly card: SignatureAgentCard | null; readonly why: string | null }

export type SignatureAgentCard = { readonly name: string | null; readonly homepage: string | null; readonly contacts: readonly (string)[]; readonly purpose: readonly (string)[]; readonly purposes: readonly ("search" | "assistant" | "agent" | "training" | "archive" | "monitor" | "preview" | "seo" | "security")[]; readonly trigger: "fetcher" | "crawler" | null; readonly user_agents: readonly (string)[]; readonly robots_token: string | null; readonly keeps_robots: boolean; readonly content: string | null; readonly rate_control: string | null; readonly rate_expectation: string | null; readonly known_urls: readonly (string)[]; readonly ranges_url: string | null; readonly ignored: readonly (string)[] }

export type AgentRobots = { readonly agent_id: string; readonly window: "1h" | "24h" | "7d" | "30d"; readonly robots_token: string | null; readonly requests: number; readonly estimated: number; readonly robots_requests: number; readonly compared: number; readonly disallowed: number; readonly share: number | null; readonly paths: readonly ({ readonly app: string; readonly host: string | null; readonly path: string; readonly line: string; readonly requests: number })[]; readonly stopped_at: Time | null }

export type AgentStatistics = { readonly window: "1h" | "24h" | "7d" | "30d"; readonly bucket: "1m" | "5m" | "15m" | "1h" | "6h" | "1d"; readonly since: Time; readonly total: number; readonly agents: readonly ({ readonly agent_id: string; readonly agent_name: string; readonly agent_category: "llm-sdk" | "browser-agent" | "orchestrator" | "crawler" | "mcp-client" | "custom" | null; readonly agent_purpose: readonly ("search" | "assistant" | "agent" | "training" | "archive" | "monitor" | "preview" | "seo" | "security")[]; readonly vendor: string | null; readonly requests: number; readonly blocked: number; readonly verified: number | null; readonly last_seen: Time | null; readonly series: readonly (number)[] })[] }

export type AgentFingerprints = { readonly agent_id: string; readonly window: "1h" | "24h" | "7d" | "30d"; readonly requests: number; readonly fingerprints: readonly ({ readonly type: "ja4" | "ja4h" | "http2"; readonly value: string; readonly first_seen: Time; readonly last_seen: Time; readonly requests: number; readonly estimated: number; readonly new: boolean | null })[]; readonly others: number; readonly stopped_at: Time | null }

export type AgentRules = { readonly agent_id: string; readonly app: string; readonly rules: readonly ({ readonly rule: string; readonly layer: "first" | "app" | "last"; readonly action: "pass" | "tag" | "block" | "rate_limit" | "tarpit" | "redirect" | "route" | "charge"; readonly dry_run: boolean; readonly expires_at: Time | null; readonly limit: { readonly requests: number; readonly window_ms: number; readonly per: "agent" | "fingerprint" | "address" } | null; readonly price: { readonly amount: string; readonly currency: string; readonly schemes: readonly ("x402" | "crawler-price" | "license")[]; readonly pass_ms: number | null } | null; readonly depends_on: readonly (string)[] })[]; readonly otherwise: "pass" | "tag" | "block" | "rate_limit" | "tarpit" | "redirect" | "route" | "charge" | null }

export type Payment = { readonly id: string; readonly state: "open" | "paid" | "owed" | "refused" | "refunded"; readonly scheme: "x402" | "crawler-price" | "license"; readonly app: string; readonly rule: string; readonly agent_id: string | null; readonly key: string | null; readonly payer: string | null; readonly host: string; readonly path: string; readonly price: string; readonly currency: string; readonly network: string | null; readonly asset: string | null; readonly transaction: string | null; readonly why: string | null; readonly purpose: readonly (string)[]; readonly license: string | null; readonly decision_id: string; readonly created_at: Time; readonly settled_at: Time | null; readonly served_at: Time | null; readonly pass_until: Time | null; readonly refunded_at: Time | null; readonly refund_note: string | null }

export type PaymentSums = { readonly sums: readonly (PaymentSum)[] }

export type PaymentSum = { readonly of: string | null; readonly currency: string; readonly state: "paid" | "owed" | "refunded"; readonly payments: number; readonly amount: string }

export type Campaign = { readonly id: string; readonly state: "running" | "ended"; readonly found_at: Time; readonly last_seen_at: Time; readonly host: string | null; readonly members: number; readonly requests: number; readonly software_id: string | null; readonly user_agent: string | null; readonly fingerprints: { readonly ja4: string | null; readonly stable: string | null; readonly http2: string | null }; readonly signs: { readonly addresses: number; readonly people: number; readonly pages_min: number; readonly pages: number; readonly different_pages: number; readonly timing_variation: number | null } }

export type Event = { readonly id: string; readonly type: "new_agent" | "new_signature" | "threat_detected" | "payment"; readonly timestamp: Time; readonly data: Readonly<Record<string, unknown>> }

export type Case = { readonly id: string; readonly status: "open" | "accepted" | "false_alarm"; readonly reason: "spoofed_browser" | "foreign_address" | "proof_failed" | "proof_contradicted" | "forged_headers" | "blocked" | "rate_limited" | "rate_anomaly" | "robots_violation" | "crawl_campaign"; readonly severity: "low" | "medium" | "high" | "critical"; readonly app: string | null; readonly campaign_id: string | null; readonly agent_id: string | null; readonly ja4: string | null; readonly address: string | null; readonly first_at: Time; readonly last_at: Time; readonly events: number; readonly requests: number; readonly changed_at: Time | null; readonly changed_by: string | null; readonly note: string | null; readonly feedback: number }

export type Sinks = { readonly sinks: readonly (Sink)[] }

export type Sink = { readonly kind: "file" | "syslog"; readonly place: string; readonly state: "current" | "behind"; readonly waiting: number; readonly oldest_waiting_at: Time | null }

export type Feedback = { readonly id: string; readonly decision_id: string; readonly verdict: "agent" | "human"; readonly agent_id: string | null; readonly outcome: "confirmed" | "false_positive" | "false_negative" | "wrong_agent"; readonly decided: { readonly verdict: string; readonly agent_id: string | null }; readonly counted_for: readonly ({ readonly type: string; readonly fingerprint: string })[]; readonly created_at: Time }

export type Fleet = { readonly version: string; readonly leads: boolean; readonly snapshot: { readonly number: number; readonly hash: string; readonly made_at: Time } | null; readonly instances: readonly (Instance)[]; readonly proxies: { readonly total: number; readonly serving: number; readonly unready: number; readonly starting: number; readonly stale: number; readonly current: number; readonly by_version: Readonly<Record<string, number>>; readonly oldest_snapshot_made_at: Time | null } | null }

export type Instance = { readonly id: string; readonly pid: number | null; readonly state: "starting" | "serving" | "unready" | "gone"; readonly since: Time | null; readonly snapshot: number | null; readonly current: boolean; readonly reasons: readonly (string)[] }

export type FleetProxy = { readonly id: string; readonly host: string; readonly version: string; readonly config_hash: string; readonly state: "serving" | "unready" | "starting" | "stale"; readonly started_at: Time; readonly heard_at: Time; readonly snapshot: { readonly number: number; readonly hash: string; readonly made_at: Time; readonly age_s: number } | null; readonly snapshot_source: "builtin" | "disk" | "bus"; readonly refused_snapshot: { readonly number: number; readonly reason: string } | null; readonly current: boolean; readonly workers: readonly (Instance)[]; readonly sightings: { readonly waiting: number; readonly dropped: number }; readonly history: readonly ({ readonly from: Time; readonly to: Time; readonly state: "serving" | "unready" | "starting" | "stale" | "away"; readonly behind: boolean; readonly refusing: boolean; readonly losing: boolean })[] }

export type Principal = { readonly id: string; readonly name: string; readonly scopes: readonly (Scope)[]; readonly apps: readonly (string)[] | "*"; readonly plan: Plan; readonly expires_at: Time | null }

export type NewKey = { readonly id: string; readonly name: string; readonly scopes: readonly (Scope)[]; readonly apps: readonly (string)[] | "*"; readonly plan: Plan; readonly created_at: Time; readonly expires_at: Time | null; readonly key: string }

export type Key = { readonly id: string; readonly name: string; readonly scopes: readonly (Scope)[]; readonly apps: readonly (string)[] | "*"; readonly plan: Plan; readonly created_at: Time; readonly expires_at: Time | null; readonly last_used_at: Time | null }

export type Grant = { readonly id: string; readonly name: string | null; readonly uri: string | null; readonly thumbprint: string; readonly state: GrantState; readonly scopes: readonly ("read" | "detect" | "write" | "admin" | "mcp")[]; readonly decided_by: string | null; readonly bearer: boolean; readonly finish_uri: string | null; readonly created_at: Time; readonly expires_at: Time }

export type NewClient = { readonly client_id: string; readonly name: string; readonly grant_types: readonly (GrantType)[]; readonly redirect_uris: readonly (string)[]; readonly scopes: readonly (Scope)[]; readonly apps: readonly (string)[] | "*"; readonly token_endpoint_auth_method: ClientAuthMethod; readonly jwks: Readonly<Record<string, unknown>> | null; readonly plan: Plan; readonly created_at: Time; readonly origin: string; readonly client_secret?: string }

export type Client = { readonly client_id: string; readonly name: string; readonly grant_types: readonly (GrantType)[]; readonly redirect_uris: readonly (string)[]; readonly scopes: readonly (Scope)[]; readonly apps: readonly (string)[] | "*"; readonly token_endpoint_auth_method: ClientAuthMethod; readonly jwks: Readonly<Record<string, unknown>> | null; readonly plan: Plan; readonly created_at: Time; readonly origin: string }

export type SigningKey = { readonly kid: string; readonly created_at: Time; readonly signs_from: Time }

export type AuditEntry = { readonly id: string; readonly at: Time; readonly principal: string; readonly action: string; readonly subject: string | null; readonly apps: readonly (string)[] | "*"; readonly detail: Readonly<Record<string, unknown>>; readonly address: string | null; readonly request_id: string | null }

export type Erasure = { readonly dry_run: boolean; readonly tables: readonly ({ readonly table: string; readonly rows: number; readonly done: "deleted" | "blanked" })[] }

export type App = { readonly id: string; readonly name: string; readonly team: string | null; readonly hosts: readonly (string)[]; readonly upstream: string | null; readonly labels: readonly (string)[]; readonly quota: AppQuota | null; readonly source: "settings" | "api"; readonly created_at: Time | null; readonly updated_at: Time | null }

export type AppPolicyInForce = { readonly policy: AppPolicy; readonly source: "file" | "api" | "default"; readonly file: string | null; readonly hash: string; readonly version: number | null; readonly author: string | null; readonly comment: string | null; readonly created_at: Time | null; readonly restored_version: number | null; readonly in_force_since: Time; readonly warnings: readonly (PolicyWarning)[]; readonly problems: readonly (string)[] }

export type PolicyVersion = { readonly version: number; readonly hash: string; readonly author: string; readonly comment: string | null; readonly created_at: Time; readonly restored_version: number | null; readonly in_force: boolean }

export type PolicyExplanation = { readonly app: string; readonly verdict: { readonly kind: "agent" | "automation" | "human" | "unknown"; readonly given: boolean; readonly agent: { readonly id: string; readonly name: string; readonly category: string; readonly purpose: readonly (string)[] } | null; readonly software: { readonly id: string; readonly name: string; readonly kind: "agent" | "tool" | "browser" } | null; readonly confidence: number; readonly name_confidence: number; readonly verified: "web-bot-auth" | "ip-range" | "reverse-dns" | null; readonly proof: Proof | null; readonly conflicts: readonly (string)[]; readonly evidence: readonly (Evidence)[] }; readonly rules: readonly ({ readonly rule: string; readonly layer: "first" | "app" | "last"; readonly holds: boolean; readonly decides: boolean; readonly dry_run: boolean; readonly expired: boolean; readonly doubtful: boolean; readonly why: string; readonly conditions: readonly ({ readonly name: string; readonly takes: unknown; readonly holds: boolean; readonly seen: unknown })[] })[]; readonly decision: { readonly rule: string; readonly layer: "first" | "app" | "last"; readonly action: string; readonly would_have: { readonly rule: string; readonly layer: "first" | "app" | "last"; readonly action: string } | null }; readonly unknown_signer_wait_ms: number | null; readonly warnings: readonly (PolicyWarning)[] }

export type PolicyPreview = { readonly app: string | null; readonly window: "1h" | "24h" | "7d" | "30d"; readonly against: "recorded" | "current"; readonly from: Time | null; readonly to: Time | null; readonly complete: boolean; readonly sightings: number; readonly counted: number; readonly unchanged: number; readonly changed: number; readonly unjudged: number; readonly by_settings: number; readonly left_out: number; readonly transitions: readonly ({ readonly from: string; readonly to: string; readonly count: number })[]; readonly rules: readonly ({ readonly rule: string; readonly layer: "first" | "app" | "last"; readonly app: string | null; readonly before: number | null; readonly after: number | null; readonly on_trial: number })[]; readonly verdicts: readonly ({ readonly name: string; readonly from: string; readonly to: string; readonly count: number })[]; readonly agents: readonly ({ readonly name: string; readonly from: string; readonly to: string; readonly count: number })[]; readonly paths: readonly ({ readonly name: string; readonly from: string; readonly to: string; readonly count: number })[]; readonly warnings: readonly (PolicyWarning)[]; readonly open: readonly ({ readonly policy: "new" | "old"; readonly rule: string; readonly layer: "first" | "app" | "last"; readonly app: string | null; readonly needs: readonly (string)[]; readonly sightings: number })[] }

export type PolicyTerms = { readonly robots: string; readonly content_usage: readonly ({ readonly path: string; readonly value: string })[]; readonly rsl: string; readonly unpublished: readonly ({ readonly rule: string; readonly layer: "first" | "app" | "last" })[]; readonly contradictions: readonly ({ readonly kind: "refused" | "let_in"; readonly path: string; readonly line: number | null; readonly rule: string | null; readonly user_agents: readonly (string)[] })[] | null; readonly complete: boolean }

export type PolicyInForce = { readonly policy: Policy; readonly source: "file" | "api" | "default"; readonly file: string | null; readonly hash: string; readonly version: number | null; readonly author: string | null; readonly comment: string | null; readonly created_at: Time | null; readonly restored_version: number | null; readonly in_force_since: Time; readonly warnings: readonly (PolicyWarning)[]; readonly problems: readonly (string)[] }

export type Settings = { readonly settings: readonly (Setting)[] }

export type Setting = { readonly name: string; readonly value: unknown; readonly origin: string; readonly configured: unknown; readonly changeable: boolean; readonly description: string; readonly changed_at: Time | null }

export type Trust = { readonly id: string; readonly agent_id: string | null; readonly document: Readonly<Record<string, unknown>> | null; readonly jwk: Readonly<Record<string, unknown>> | null; readonly thumbprint: string | null; readonly name: string | null; readonly scopes: readonly (Scope)[]; readonly apps: readonly (string)[] | "*"; readonly plan: Plan; readonly created_at: Time }

export type User = { readonly id: string; readonly email: string; readonly scopes: readonly (Scope)[]; readonly apps: readonly (string)[] | "*"; readonly has_password: boolean; readonly has_one_time_codes: boolean; readonly disabled: boolean; readonly openid: OpenidAccount | null; readonly created_at: Time }

export type OpenidAccount = { readonly issuer: string; readonly subject: string }

export type WebhookWithSecret = { readonly id: string; readonly url: string; readonly events: readonly (EventType)[]; readonly filters: WebhookFilters | null; readonly apps: readonly (string)[] | "*"; readonly description: string | null; readonly enabled: boolean; readonly created_at: Time; readonly updated_at: Time; readonly old_secret_expires_at: Time | null; readonly disabled_at: Time | null; readonly disabled_reason: string | null; readonly pending: number; readonly last_delivery_at: Time | null; readonly failing_since: Time | null; readonly paused_until: Time | null; readonly secret: string }

export type Webhook = { readonly id: string; readonly url: string; readonly events: readonly (EventType)[]; readonly filters: WebhookFilters | null; readonly apps: readonly (string)[] | "*"; readonly description: string | null; readonly enabled: boolean; readonly created_at: Time; readonly updated_at: Time; readonly old_secret_expires_at: Time | null; readonly disabled_at: Time | null; readonly disabled_reason: string | null; readonly pending: number; readonly last_delivery_at: Time | null; readonly failing_since: Time | null; readonly paused_until: Time | null }

export type Delivery = { readonly id: string; readonly webhook_id: string; readonly event_id: string; readonly event_type: "new_agent" | "new_signature" | "threat_detected" | "payment" | "test"; readonly event_at: Time; readonly status: "pending" | "delivered" | "failed"; readonly attempts: number; readonly log: readonly (DeliveryAttempt)[]; readonly created_at: Time; readonly next_attempt_at: Time | null; readonly finished_at: Time | null }

export type DeliveryAttempt = { readonly at: Time; readonly duration_ms: number; readonly status: number | null; readonly error: string | null; readonly response: string }

export type WebhookReplayed = { readonly queued: number; readonly next_since: Time | null }

export type DeliveryWithBody = { readonly id: string; readonly webhook_id: string; readonly event_id: string; readonly event_type: "new_agent" | "new_signature" | "threat_detected" | "payment" | "test"; readonly event_at: Time; readonly status: "pending" | "delivered" | "failed"; readonly attempts: number; readonly log: readonly (DeliveryAttempt)[]; readonly created_at: Time; readonly next_attempt_at: Time | null; readonly finished_at: Time | null; readonly body: { readonly type: string; readonly timestamp: Time; readonly data: Readonly<Record<string, unknown>> } }
