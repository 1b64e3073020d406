// Ranks documents with Lucene itself, to compare our search with. Single file; see README.md for the command.
// Input: one document a line, one query a line. Output: a line of "document:score" pairs per query, best first.

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.lucene.analysis.Analyzer;
import org.apache.lucene.analysis.TokenStream;
import org.apache.lucene.analysis.en.EnglishAnalyzer;
import org.apache.lucene.analysis.tokenattributes.CharTermAttribute;
import org.apache.lucene.document.Document;
import org.apache.lucene.document.Field;
import org.apache.lucene.document.TextField;
import org.apache.lucene.index.DirectoryReader;
import org.apache.lucene.index.IndexWriter;
import org.apache.lucene.index.IndexWriterConfig;
import org.apache.lucene.index.Term;
import org.apache.lucene.search.BooleanClause;
import org.apache.lucene.search.BooleanQuery;
import org.apache.lucene.search.BoostQuery;
import org.apache.lucene.search.IndexSearcher;
import org.apache.lucene.search.ScoreDoc;
import org.apache.lucene.search.TermQuery;
import org.apache.lucene.search.similarities.BM25Similarity;
import org.apache.lucene.store.ByteBuffersDirectory;

public class Rank {
    static final String FIELD = "contents";
    static final int LIMIT = 50;

    public static void main(String[] args) throws Exception {
        List<String> documents = Files.readAllLines(Path.of(args[0]));
        List<String> queries = Files.readAllLines(Path.of(args[1]));
        Analyzer analyzer = new EnglishAnalyzer();
        BM25Similarity similarity = new BM25Similarity(0.9f, 0.4f);
        ByteBuffersDirectory directory = new ByteBuffersDirectory();
        IndexWriterConfig config = new IndexWriterConfig(analyzer);
        config.setSimilarity(similarity);
        try (IndexWriter writer = new IndexWriter(directory, config)) {
            for (String text : documents) {
                Document document = new Document();
                document.add(new TextField(FIELD, text, Field.Store.NO));
                writer.addDocument(document);
            }
            writer.forceMerge(1);
        }
        IndexSearcher searcher = new IndexSearcher(DirectoryReader.open(directory));
        searcher.setSimilarity(similarity);
        StringBuilder out = new StringBuilder();
        for (String query : queries) {
            BooleanQuery.Builder builder = new BooleanQuery.Builder();
            for (Map.Entry<String, Integer> term : count(analyzer, query).entrySet()) {
                TermQuery one = new TermQuery(new Term(FIELD, term.getKey()));
                builder.add(new BoostQuery(one, term.getValue()), BooleanClause.Occur.SHOULD);
            }
            for (ScoreDoc hit : searcher.search(builder.build(), LIMIT).scoreDocs) {
                out.append(hit.doc).append(':').append(hit.score).append(' ');
            }
            out.append('\n');
        }
        Files.writeString(Path.of(args[2]), out.toString());
    }

    static Map<String, Integer> count(Analyzer analyzer, String text) throws Exception {
        Map<String, Integer> counts = new LinkedHashMap<>();
        try (TokenStream stream = analyzer.tokenStream(FIELD, text)) {
            CharTermAttribute term = stream.addAttribute(CharTermAttribute.class);
            stream.reset();
            while (stream.incrementToken()) {
                counts.merge(term.toString(), 1, Integer::sum);
            }
            stream.end();
        }
        return counts;
    }
}
