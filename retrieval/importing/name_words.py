"""Words by which names of taxa are told from other names: of taxa, of authors, of everyday use."""

from __future__ import annotations

from typing import Final

GENERA: Final = frozenset(
    """
    abies abramis aburria acanthis acanthiza acanthurus accipiter acer aceros acherontia achillea
    acinonyx acipenser acomys aconitum acridotheres acrocephalus actias actitis addax adonis
    aegithalos aegolius aepyceros aesculus aethia agalychnis agama agapornis agaricus agelaius
    aglais agrostis ailanthus ailuroedus ailuropoda ailurus aix ajuga alathyria alauda alburnus
    alca alcedo alcelaphus alces aldabrachelys alectoris alligator allium alnus aloe alopochen
    alouatta alytes amanita amaranthus amazilia amazona amblyrhynchus ambystoma ammotragus
    amphiprion anas anax anaxyrus anemone anguilla anguis anolis anopheles anous anser antechinus
    anthochaera anthocharis anthriscus anthus antidorcas antilocapra antilope aonyx aotus apalone
    apatura aphantopus aphelocoma apis apodemus aptenodytes apteryx apus aquila aquilegia ara
    aramus araneus araschnia aratinga araucaria arbutus archilochus arctictis arctocephalus
    arctogalidia arctostaphylos ardea argema argiope argynnis arion arnica arremon artamus
    artemisia arvicola asio asparagus asplenium astacus aster astronotus ateles athene atlapetes
    atropa attacus axis aythya babyrousa baeolophus balaena balaenoptera barbus basileuterus
    basiliscus bassariscus bellis berberis betta betula bison bitis blastocerus boa boletus
    bombina bombus bombycilla bombyx bonasa bos boselaphus botaurus bothrops brachyramphus
    bradypus branta brassica bromus brookesia brotogeris bubalus bubo bubulcus bucanetes bucco
    bucephala buceros bucorvus buddleja budorcas bufo bufotes bungarus buphagus burhinus buteo
    buxus cacajao cacatua cacomantis caiman calcarius calidris callipepla callithrix callorhinus
    callosciurus calluna caloenas calopteryx caltha calypte calyptorhynchus camellia camelus
    campanula campephilus canis cannabis cantharellus capra capreolus capricornis caprimulgus
    capsella carabus caracal caracara carassius carcharhinus carcharodon cardellina cardinalis
    carduelis carduus caretta carex carpinus carpodacus castanea castor casuarius cathartes
    catharus catopuma cavia cebus ceiba celastrina centaurea centrocercus centrochelys centropus
    cephalanthera cephalophus cepphus ceratotherium cercopithecus certhia cervus ceryle cetonia
    chaetodon chalcides chamaeleo charadrius chelidonium chelonia chelydra chenopodium chinchilla
    chlidonias chloebia chloris chlorocebus chloroceryle chloropsis chlorospingus choloepus
    chordeiles chroicocephalus chrysemys chrysococcyx chrysocyon chrysolina chrysopa cicindela
    ciconia cinclocerthia cinclus cinnyris circaetus circus cirsium cissa cistothorus citrus
    civettictis clamator clematis clupea cobitis coccinella coccothraustes coendou coenonympha
    coereba colaptes colias colibri colinus colius colobus coloeus columba columbina conepatus
    connochaetes conolophus contopus convallaria convolvulus copsychus coracias corallus coregonus
    corella cornus coronella corvus corylus coryphaena cossypha cotinga cottus coturnix cracticus
    crataegus crax crepis crex cricetus crinifer crocidura crocodylus crocus crocuta crotalus
    crotaphytus crotophaga cryptobranchus cryptoprocta crypturellus cuculus culex cuon cuora
    cupressus cyanerpes cyanistes cyanocitta cyanocorax cyclamen cyclura cygnus cynocephalus
    cynomys cyprinus cypripedium cystophora dacelo dacnis dactylis dactylorhiza dahlia dama
    damaliscus danaus danio daphne daphnia dasypus dasyurus datura daubentonia daucus deilephila
    delichon delphinapterus delphinus dendroaspis dendrobates dendrocitta dendrocopos dendroica
    dendrolagus dermochelys deroptyus diadophis dianthus dicaeum dicentrarchus dicerorhinus
    diceros dicrurus didelphis digitalis diomedea dioscorea diospyros dipodomys dolichonyx
    dolichotis dromaius dromas drosera drosophila dryobates dryocopus dryopteris ducula dugong
    dumetella dytiscus echinacea echinops eclectus egretta eira elaphe elaphurus elephantulus
    elephas emberiza empidonax emys enhydra eolophus epicrates epilobium epinephelus epipactis
    eptesicus equisetum equus eremophila erethizon eretmochelys erica erignathus erinaceus
    eriophorum eristalis erithacus erodium eryngium eschrichtius eschscholzia esox estrilda
    eubalaena eucalyptus eudorcas eudromia eudynamys eudyptes eudyptula eulemur eumeces eumetopias
    eunectes euonymus eupatorium euphagus euphorbia euphrasia euplectes eurycea eurypyga fagus
    falco felis ferula festuca ficaria ficedula ficus filipendula formica formicarius forpus
    fragaria francolinus frangula fratercula fraxinus fregata fringilla fritillaria fuchsia
    fukomys fulica furcifer furnarius gadus galago galanthus galbula galemys galerida galictis
    galidia galium gallinago gallinula gallirallus gallirex gallotia gallus gambelia gambusia
    garrulus gasterosteus gavia gavialis gazella gekko genetta genista gentiana geochelone
    geococcyx geomys geopelia geospiza geothlypis geotrygon geranium gerbillus gerygone geum
    ginkgo giraffa gladiolus glareola glaucidium glaucomys glechoma glis globicephala gobio
    gonepteryx gopherus gorilla goura gracula grallaria grampus graptemys grus gryllotalpa gryllus
    guira gulo gygis gymnadenia gymnorhina gymnorhinus gypaetus gyps haematopus haemorhous halcyon
    haliaeetus haliastur halichoerus harmonia hedera helarctos helianthemum helianthus helix
    helleborus heloderma helogale hemerocallis hemidactylus hemiprocne hemitragus hepatica
    heracleum herpailurus herpestes heterocephalus heterodon hibiscus hieracium himantopus
    hippocampus hippoglossus hippolais hippophae hippopotamus hippotragus hirudo hirundo homarus
    homo hordeum hosta humulus hyacinthoides hyaena hydrangea hydrochoerus hydropotes hydroprogne
    hydrurga hyelaphus hyla hylobates hylochoerus hylocichla hymenochirus hypericum hyperoodon
    hystrix ibis ichneumia icterus ictonyx iguana ilex impatiens inachis indicator indri inia
    inula iphiclides irena iris ischnura ixobrychus ixodes ixoreus jacana jaculus jasminum juglans
    junco juncus juniperus jynx ketupa kniphofia kobus labroides lacerta lactarius lactuca
    lagenorhynchus lagopus lagostomus lagothrix lama lamium lampropeltis lamprotornis lampyris
    lanius lantana larix larus larvivora lasius lathyrus latimeria latrodectus laurus lavandula
    lemmus lemur leontopithecus leontopodium leopardus lepidochelys lepomis leptailurus
    leptonychotes leptotila lepus leucanthemum leuciscus leucophaeus leucosticte libellula
    ligustrum lilium limenitis limosa linaria linum liquidambar liriodendron lissotriton listera
    lithobates litoria lobodon lonchura lonicera lontra lophophanes lophortyx lophura loris lorius
    lota lotus loxia loxodonta lucanus lullula lunaria lupinus luscinia lutjanus lutra luzula
    lybius lycaena lycalopex lycaon lycium lycopodium lygosoma lymnaea lynx lyrurus lysimachia
    lythrum macaca macrochelys macroglossum macropus macrotis madoqua magnolia mahonia malurus
    malus malva manacus mandrillus maniola manis mantis mareca marmosa marmota martes masticophis
    matricaria mazama medicago megaceryle megalaima megaptera megarynchus megascops melanargia
    melanerpes melanitta melanocorypha melanosuchus meleagris meles melilotus meliphaga melitaea
    mellivora melolontha melopsittacus melospiza melursus mentha menura mephitis mergellus mergus
    meriones merlangius merops mesocricetus micromys micropterus microtus milvus mimosa mimulus
    mimus mirafra mirounga misumena mniotilta mola molinia moloch molothrus momotus monachus
    monodon monticola montifringilla morelia moschus motacilla mugil mullus muntiacus mus musa
    musca muscardinus muscari muscicapa musophaga mustela mycteria myiarchus myiopsitta myocastor
    myodes myosotis myotis myrmecophaga myrmica mytilus naemorhedus naja nanger narcissus nasalis
    nasua natrix nectarinia necturus nelumbo neofelis neogale neophoca neophron neotoma neovison
    nepenthes nepeta nerium nerodia nestor netta nicotiana nigella ninox noctua numenius numida
    nuphar nyctalus nyctea nyctereutes nyctibius nycticebus nycticorax nymphaea nymphalis
    nymphicus ochotona octopus ocypus odobenus odocoileus oenanthe oenothera okapia olea
    ommatophoca oncorhynchus ondatra oniscus onopordum onychoprion oophaga opheodrys ophiophagus
    ophrys opisthocomus opuntia orchis orcinus oreamnos oreotragus origanum oriolus
    ornithorhynchus ortalis orycteropus oryctes oryctolagus oryx osmia osmunda osphranter otis
    otocolobus otocyon otus ourebia ovibos ovis oxalis ozotoceros paeonia pan pandion panthera
    pantherophis pantholops panurus papaver papilio papio paracanthurus paradisaea paradoxurus
    pararge pardalotus parnassius parus passer passerella passerina passiflora patagioenas pavo
    pecari pediculus pelargonium pelecanus pelobates pelodytes pelophylax penelope perameles perca
    perdix perisoreus pernis peromyscus petasites petaurista petaurus petrochelidon petrogale
    petromyzon petronia phacochoerus phalacrocorax phalanger phalaropus pharomachrus phascolarctos
    phasianus phelsuma pheucticus philemon philomachus phlox phoca phocoena phoebe phoenicopterus
    phoeniculus phoenicurus phoenix phragmites phrynosoma phyllobates phylloscopus physeter pica
    picea picoides picus pieris pinguicula pinguinus pinicola pinus pionus pipa piper pipilo
    pipistrellus pipra piranga pitangus pithecia pitta pituophis plantago platalea platanus
    platichthys platycercus platycnemis plebejus plecotus plectrophenax plestiodon plethodon
    pleuronectes pleurotus ploceus pluvialis pluvianus poa podarcis podargus podiceps poecile
    poecilia pogona poicephalus polioptila pollachius polygala polygonatum polygonia polygonum
    polyommatus polypterus pomacanthus pongo populus porphyrio porzana potamochoerus potentilla
    potos presbytis primula priodontes prionailurus prionodon priotelus procavia procnias procyon
    profelis progne propithecus prosthemadera proteles protonotaria protopterus prunella prunus
    psaltriparus psammodromus pseudacris pseudemys pseudocheirus pseudois psittacula psittacus
    psophia pteridium pterocles pteroglossus pterois pteronura pterophyllum pteropus ptilinopus
    ptilopsis pudu puffinus pulmonaria pulsatilla pulsatrix puma pusa pycnonotus pygocentrus
    pygoscelis pyrausta pyrgus pyrola pyrrhocorax pyrrhocoris pyrrhula pyrrhura pyrus python
    quelea quercus quiscalus rallus ramphastos ramphocelus rana rangifer ranunculus raphicerus
    rattus ratufa recurvirostra redunca regulus remiz reseda rhamnus rhea rhinella rhinoceros
    rhinolophus rhinopithecus rhipidura rhododendron rhus rhynchops ribes riparia rissa robinia
    rosa rosmarinus rostratula rubus rucervus rudbeckia rumex rupicapra rupicola rusa russula
    rutilus sagittaria saguinus saiga saimiri salamandra salix salmo salvelinus salvia sambucus
    sander sanguisorba sapajus sarcophilus sarcoramphus saturnia satyrium saxicola saxifraga
    sayornis scabiosa scarus sceloporus scilla sciurus scolopax scomber scorpaena scrophularia
    scutellaria sedum selasphorus selenidera semnopithecus sempervivum senecio sequoia serinus
    setonix setophaga sialia sicalis sigmodon silene silurus sinapis sitta smerinthus smithornis
    smutsia solanum solea solenopsis solidago somateria sorbus sorex sousa sparus spatula speothos
    spermophilus spheniscus sphenodon sphinx sphyrapicus sphyrna spilogale spinus spiraea spiza
    spizella spizelloides sporophila squalius stachys steatornis stellaria stenella stercorarius
    sterna sternula streptopelia strigops strix struthio sturnella sturnus sula suricata surnia
    sus sylvia sylvicapra sylvilagus sympecma sympetrum symphalangus symphysodon symphytum
    synallaxis synanceia syncerus syngnathus synthliboramphus syringa tachybaptus tachycineta
    tachyglossus tadorna taeniopygia talpa tamandua tamarix tamias tamiasciurus tanacetum tangara
    tapirus taraxacum tarentola tarsiger tarsius tauraco taurotragus taxidea taxus tayassu
    tegenaria tenrec terpsiphone terrapene testudo tetracerus tetrao teucrium thalassarche
    thalasseus thalassoma thalictrum thamnophis theropithecus thraupis threskiornis thryothorus
    thuja thunnus thylogale thymallus thymelicus thymus tichodroma tilia tiliqua timon tinamus
    tinca tockus todiramphus todus tomistoma torpedo toxostoma trachemys trachypithecus
    tragelaphus tragopogon tragulus trametes tremarctos treron trichechus trichoglossus
    trichosurus trifolium trigla tringa trioceros triticum triturus troglodytes trogon trollius
    tropaeolum tsuga tulipa tupaia turdus tursiops tussilago tympanuchus typha tyrannus tyto ulex
    ulmus upupa uragus uria urocissa urocyon ursus urtica uta vaccinium valeriana vanellus vanessa
    varanus varecia veratrum verbascum verbena veronica vespa vespertilio vespula viburnum vicia
    vicugna vidua vinca viola vipera vireo viscum vitis viverra vombatus vulpes vultur wallabia
    wisteria xanthia xanthocephalus xenopus xerus xiphias xiphophorus xylocopa yucca zaglossus
    zalophus zamenis zavattariornis zea zebrasoma zenaida zeus ziphius zonotrichia zoothera
    zootoca zosterops zygaena
    """.split()  # noqa: SIM905 one a line would be a thousand lines
)
"""Genera that are photographed often, in lower case; the corpus and the import add theirs."""

EVERYDAY_GENERA: Final = frozenset(
    """
    adonis aloe anemone ara asparagus aster axis betta bison boa cannabis caracal circus colibri
    crocus cyclamen dahlia danio daphne erica fuchsia gorilla guira harmonia hosta iguana
    indicator inia irena iris loris lotus lynx magnolia manis mimosa moloch musa nestor octopus
    pan penelope phoebe phoenix pipa piper pitta progne puma pusa python rhinoceros rosa salvia
    sander sequoia solea sousa sphinx torpedo trogon uta vanessa veronica viola wisteria yucca
    zeus
    """.split()  # noqa: SIM905 one a line would be a thousand lines
)
"""Of these the genera that are words or first names, too."""

HIGHER_TAXA: Final = frozenset(
    """
    acari accipitriformes actinopterygii agnatha amphibia angiospermae animalia annelida
    anseriformes anthozoa anura apoda apodiformes arachnida araneae archaea arthropoda
    artiodactyla ascomycota asparagales asterales aves bacteria basidiomycota bivalvia blattodea
    brassicales bryophyta caprimulgiformes carnivora caryophyllales caudata cephalopoda cetacea
    charadriiformes chilopoda chiroptera chondrichthyes chordata ciconiiformes clitellata cnidaria
    coleoptera collembola columbiformes coraciiformes crustacea cuculiformes decapoda diplopoda
    diptera echinodermata elasmobranchii ephemeroptera ericales fabales fagales falconiformes
    fungi galliformes gastropoda gentianales gruiformes gymnospermae hemiptera heterocera
    hymenoptera insecta isopoda isoptera lagomorpha lamiales lepidoptera lichenes liliales
    liliopsida magnoliopsida malacostraca malpighiales mammalia mantodea marchantiophyta
    marsupialia mecoptera mollusca monotremata myriapoda nematoda neuroptera odonata opiliones
    orchidales orthoptera osteichthyes passeriformes pelecaniformes perissodactyla phasmatodea
    phasmida piciformes pinales pinopsida plantae platyhelminthes plecoptera poales porifera
    primates proboscidea protozoa psittaciformes pteridophyta ranunculales reptilia rhopalocera
    rodentia rosales rotifera sapindales saxifragales scorpiones serpentes sirenia soricomorpha
    sphenisciformes squamata strigiformes testudines thysanoptera trichoptera urodela
    """.split()  # noqa: SIM905 one a line would be a thousand lines
)
"""Taxa above genus, in lower case, whose endings don't show it."""

AUTHORS: Final = frozenset(
    """
    adanson agassiz audubon baird bechstein bloch bluff blyth boddaert boie bonaparte boulenger
    brehm brisson brünnich burchell cope cuvier darwin daudin dejean desmarest donovan duméril
    esper fabricius fallén fitzinger forster fries geoffroy germar gmelin gould gray gyllenhal
    harris haworth hodgson horsfield hübner illiger jacquin jussieu kirby koch kummer lacepède
    lamarck latham latreille laurenti leach lesson lichtenstein linnaeus linne linné loudon meigen
    miller montagu müller naumann olivier pallas panzer persoon poda pontoppidan quélet raffles
    rafinesque retzius ridgway rossi rottemburg savigny say schaeffer schiffermüller schinz
    schlegel schneider schreber scopoli selby shaw smith sparrman spix stephens swainson temminck
    thunberg tunstall vieillot vigors wagler walckenaer wesmael wilson zetterstedt
    """.split()  # noqa: SIM905 one a line would be a thousand lines
)
"""Authors of many names, in lower case, who may stand after a species without a year."""

PLAIN_WORDS: Final = frozenset(
    """
    a about abril ad adult adulte adulto adults agosto all alle alpha altes am an and andere
    angeln animal animales animals animaux april arbol archiv archive arte arten as at august
    aurora aus auto autos autres aves azul baby backup barca beach bear bears beetle beetles bike
    bilder bird birds birthday black blanca blanche blanco blau blaue bleu bleue blue blume blumen
    bonita bonito bonus boy buch butterflies butterfly camera campo campus car cars casa cat cats
    centrum chair chica chico chien christmas city class classes clip clips cloud code collection
    comun común copia copie copy corpus costa crocodile cuba curriculum cópia data dataset date
    daten day days deer demo der des dezember die divers dog dogs dora dos download downloads
    dragon duck ducks duplicate duplicates eagle egg eggs ei eier el en especie especies espécimen
    et europa example examples export familia family família farm fauna februar fem female femelle
    ferien festival fiesta figure figures files film final fiore fisch fische flor flora flores
    flute folder folders food forest forma foto fotos fox foxes frau fruit für galeria galería
    gallery garden gare garten gata gato gatos geburtstag girl gold goose gran grande grandes
    gratis grau graue green grey gris grise groß gruppe grün grüne haus hembra herbst herd hoja
    hojas holiday holidays home horas horse house idea ideas image imagen imagens images imago imm
    immature import imágenes in india info insect insecto insectos insects insekten ipsum isla
    island islas italia jahr januar jardin jardín jong joven juli julio jung junge jungvogel juni
    junio juv juvenil juvenile juveniles kamera katze kinder kitten kittens kleine kopie kreis
    käfer la label labels laguna lake landscape large larva larvae larve larven laura le leaf les
    libro lion lions lizard lorem los m magnum mai male males maman mannchen mar maria mariposa
    mariposas marta maría maus mayo mehr mes mi mis misc miscellaneous moda mon monat monkey mono
    montaña month monts moos mountain mountains mouse mujer museo museum mushroom mushrooms musica
    musik my mâle männchen märz música nacht naranja natura naturaleza nature negra negras negro
    negros nest nestling neu neue neuer neues neus new niño noir noire notebook nova nueva nuevas
    nuevo nuevos nymph nymphe nymphs of office oiseau oiseaux oktober old on opus orange ordner
    original originals oso ostern other others otra otras otro otros owl owls para park parque
    party perro perros pes petit petite pez photo photographs photos pic pics picture pictures
    pizza plage plant planta plantas plantes plants playa plaza plus poissons porto portrait pour
    preis privat private project projecto projekt proyecto pupa pupae puppe puppies puppy pájaro
    pájaros quo rabe raupe raw real red reise rio river roja rojas rojo rojos room rot rote roter
    rotes rouge sa saison salmon sample samples santa schwarz schwarze screenshot screenshots
    season selfie selva semana serie series serpiente serpientes sierra sin small snake snakes
    sommer sonstige sonstiges spec species specimen specimens spider spiders split status still
    stills stock street subad subadult summer super table tag tennis test teste tests the thumbs
    tier tiere tierfotos todas todo todos tortuga tour train training tree trees trip trips turtle
    uni unknown unsorted urlaub vacaciones vacances vacation val valid validation varia varios
    various verano verde verdes vert verte vida video videos vieja viejo view virus vogel voyage
    vögel wald wasser wedding week weibchen weihnachten weiß weiße whale whales white wiese wild
    winter woche y year yellow zoo zorro
    """.split()  # noqa: SIM905 one a line would be a thousand lines
)
"""Everyday words of English, German, French and Spanish that no species is called by."""
