import java.io.ByteArrayInputStream;
import java.io.FileInputStream;
import java.io.InputStream;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse.BodyHandlers;
import java.security.KeyStore;
import java.security.MessageDigest;
import java.security.cert.CertificateFactory;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Scanner;
import java.util.concurrent.Callable;
import java.util.concurrent.Executors;
import javax.net.ssl.SSLContext;
import javax.net.ssl.TrustManagerFactory;
import org.eclipse.jetty.util.ajax.JSON;

/** java.net.http as a client. Reads a list of requests from each line, and writes a line with the answers. */
class Client {
  static String base;
  static HttpClient client;

  public static void main(String[] argv) throws Exception {
    base = argv[0];
    client = HttpClient.newBuilder().sslContext(trusting(argv[1])).build();
    var pool = Executors.newCachedThreadPool();
    for (var lines = new Scanner(System.in); lines.hasNextLine(); ) {
      var sends = new ArrayList<Callable<Map<String, Object>>>();
      for (var ask : (Object[]) new JSON().fromJSON(lines.nextLine())) sends.add(() -> send((Map<?, ?>) ask));
      var answers = new ArrayList<Object>();
      for (var answer : pool.invokeAll(sends)) answers.add(answer.get());
      System.out.println(new JSON().toJSON(answers));
    }
    System.exit(0);
  }

  static Map<String, Object> send(Map<?, ?> ask) throws Exception {
    var status = 0;
    var length = 0;
    var error = "";
    var headers = new ArrayList<Object>();
    var hash = MessageDigest.getInstance("SHA-256");
    var isCut = (Boolean) ask.get("isCut");
    try {
      var response = client.send(requestOf(ask), BodyHandlers.ofInputStream());
      status = response.statusCode();
      response.headers().map().forEach((name, values) -> {
        for (var value : values) if (!name.startsWith(":")) headers.add(new Object[] { name, value });
      });
      try (var body = response.body()) {
        var piece = new byte[65536];
        for (int read; (read = body.read(piece)) >= 0; ) {
          hash.update(piece, 0, read);
          length += read;
          if (isCut) break;
          if (ask.get("ack") != null) client.send(to(ask.get("ack")).build(), BodyHandlers.discarding());
        }
      }
    } catch (Exception caught) {
      error = caught.toString();
    }
    var sha256 = HexFormat.of().formatHex(hash.digest());
    return Map.of(
        "status", status, "headers", headers.toArray(), "trailers", new Object[0], "length", length,
        "sha256", sha256, "error", error);
  }

  static HttpRequest.Builder to(Object path) {
    return HttpRequest.newBuilder(URI.create(base + path));
  }

  static HttpRequest requestOf(Map<?, ?> ask) {
    var body = BodyPublishers.noBody();
    if (ask.get("upload") instanceof Long length) {
      var bytes = new byte[length.intValue()];
      for (var i = 0; i < bytes.length; i++) bytes[i] = (byte) (i % 251);
      body = BodyPublishers.ofByteArray(bytes);
      if ((Boolean) ask.get("isStreamed"))
        body = BodyPublishers.ofInputStream(() -> new ByteArrayInputStream(bytes));
    }
    var request = to(ask.get("path")).method((String) ask.get("method"), body);
    for (var field : (Object[]) ask.get("headers")) {
      var pair = (Object[]) field;
      if (pair[0].equals("expect")) request.expectContinue(true);
      else request.header((String) pair[0], (String) pair[1]);
    }
    return request.build();
  }

  static SSLContext trusting(String file) throws Exception {
    var store = KeyStore.getInstance(KeyStore.getDefaultType());
    store.load(null, null);
    try (InputStream bytes = new FileInputStream(file)) {
      store.setCertificateEntry("ca", CertificateFactory.getInstance("X.509").generateCertificate(bytes));
    }
    var trust = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
    trust.init(store);
    var context = SSLContext.getInstance("TLS");
    context.init(null, trust.getTrustManagers(), null);
    return context;
  }
}
